-- Since when and by whom a relay has been asked to pause (cdc-relay pause): user@host of the operating system. While
-- paused_at is not NULL nobody moves its rows, whoever leads. Written by people, read by the leader about once a second.
-- rested_epoch is written by a leader that has come to rest: its epoch.
ALTER TABLE {{schema}}.cdc_relay_offsets
  ADD COLUMN paused_at DATETIME(6) NULL,
  ADD COLUMN paused_by VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  ADD COLUMN rested_epoch BIGINT UNSIGNED NULL;
