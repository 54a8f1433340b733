-- What people have asked the relay to do beside moving rows (cdc-relay resync). The leader takes the lowest id that is
-- queued or running, one at a time. spec is what is to be done, progress how far it is, saved with each step: after a
-- crash the next leader goes on there. created_by is user@host of the operating system. Times are UTC.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_jobs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  relay VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  spec JSON NOT NULL,
  state ENUM('queued', 'running', 'done', 'failed', 'cancelled') NOT NULL DEFAULT 'queued',
  progress JSON NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  created_by VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  started_at DATETIME(6) NULL,
  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  finished_at DATETIME(6) NULL,
  error VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (id),
  KEY waiting (relay, state, id)
) ENGINE = InnoDB;
