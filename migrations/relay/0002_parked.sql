-- What waits, and until when: rows under one of these scopes stay pending in their outbox tables. A scope is everything,
-- a topic, a topic-partition, or a pair of topic and record key; what does not belong to its kind is '' or -1. Keys are
-- bytes: two keys that a collation takes for one are two. Times are UTC. not_before is NULL: until somebody acts on the
-- row, whose table is in outbox and whose primary key in row_id (0x…: its bytes). partitions is how many the topic had.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_parked (
  relay VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  topic VARCHAR(249) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  `partition` INT NOT NULL DEFAULT -1,
  key_bytes VARBINARY(1024) NOT NULL DEFAULT '',
  partitions INT UNSIGNED NOT NULL DEFAULT 0,
  not_before DATETIME(6) NULL,
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  since DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  outbox VARCHAR(129) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  row_id TEXT CHARACTER SET ascii COLLATE ascii_bin NULL,
  PRIMARY KEY (relay, kind, topic, `partition`, key_bytes)
) ENGINE = InnoDB;
