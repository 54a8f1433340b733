-- Where the last transaction before the position begins: when the relay goes on, that transaction must still be there
-- as it was (last_gtid, last_commit_us), or the log is another one. last_begin_us repeats last_commit_us: a version
-- that does not know these columns leaves them behind, and then the two differ. NULL: nothing to go by.
ALTER TABLE {{schema}}.cdc_relay_offsets
  ADD COLUMN last_file VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  ADD COLUMN last_begin BIGINT UNSIGNED NULL,
  ADD COLUMN last_begin_us BIGINT NULL;
