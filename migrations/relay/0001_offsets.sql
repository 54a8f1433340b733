-- How far each relay has come, one row a relay. Times are UTC. Names that must compare exactly are binary-collated.
-- server_uuid, file and position are NULL until the first position is saved. MariaDB has no server_uuid: there it is
-- the server's id and GTID domain. high_* is the furthest place whose rows may have been sent.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_offsets (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  server_uuid VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  file VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  position BIGINT UNSIGNED NULL,
  gtid_set MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NULL,
  last_gtid VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NULL,
  last_commit_us BIGINT NULL,
  high_file VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  high_position BIGINT UNSIGNED NULL,
  epoch BIGINT UNSIGNED NOT NULL DEFAULT 0,
  owner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (name)
) ENGINE = InnoDB;
