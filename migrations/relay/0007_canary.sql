-- Rows that cdc-relay check writes and waits for in the binary log: does what is committed here come by there? Its columns
-- are those of an outbox, so that it is read the same way; aggregate_id is the relay's name. A row is deleted when it has
-- come by, and what a check that was killed has left is deleted by a later one. Times are UTC.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_canary (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  aggregate_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  idempotency_key BINARY(16) NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (id)
) ENGINE = InnoDB;
