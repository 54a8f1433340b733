-- What people did to rows that had failed: who, when, to which row. Written in the transaction of the act itself and
-- never read by the relay. who is user@host of the operating system, account the user that MySQL saw; aggregate_key
-- holds the key's bytes (HEX(aggregate_key) shows them), reason the row's last_error before the act. Times are UTC.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_actions (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  relay VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  who VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  account VARCHAR(320) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  action VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  outbox VARCHAR(129) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  row_id TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  topic TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  aggregate_key BLOB NULL,
  reason TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB;
