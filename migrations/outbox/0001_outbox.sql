-- An outbox table as shipped. The application inserts topic, aggregate_id, event_type, payload and headers in the
-- transaction of its business rows; the rest has defaults. Times are UTC, never the session's zone. An application
-- that wants to find its own events again sets idempotency_key itself (16 bytes of a UUID).
-- UUID_TO_BIN is MySQL's; MariaDB reads the other comment.
CREATE TABLE IF NOT EXISTS {{table}} (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  topic VARCHAR(249) CHARACTER SET ascii COLLATE ascii_bin {{topic_null}},
  aggregate_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  event_type VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  payload JSON NULL,
  headers JSON NULL,
  idempotency_key BINARY(16) NOT NULL
    DEFAULT (/*!80013 UUID_TO_BIN(UUID()) */ /*M!100600 UNHEX(REPLACE(UUID(), '-', '')) */),
  status ENUM ('pending', 'processing', 'published', 'failed') CHARACTER SET ascii COLLATE ascii_bin
    NOT NULL DEFAULT 'pending',
  available_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  claimed_at DATETIME(6) NULL,
  claimed_by BINARY(16) NULL,
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  last_error VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  published_at DATETIME(6) NULL,
  PRIMARY KEY (id),
  UNIQUE KEY idempotency_key (idempotency_key),
  KEY waiting (status, available_at, id)
) ENGINE = InnoDB;
