-- Whether an outbox should take no more rows: what an application reads, by primary key, before it inserts. Written by
-- the leading relay for outboxes with limits.policy = refuse, when the answer changes and every ten seconds. outbox is
-- schema.table. Behind valid_until (UTC) no relay has been there to look: refuse is then as it was last.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_limits (
  outbox VARCHAR(129) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  relay VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  refuse TINYINT NOT NULL DEFAULT 0,
  reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  since DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  valid_until DATETIME(6) NOT NULL,
  PRIMARY KEY (outbox)
) ENGINE = InnoDB;
