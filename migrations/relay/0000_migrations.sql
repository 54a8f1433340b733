-- Which of these files have been applied. What is not known to a version (a newer one wrote it) is ignored by it.
CREATE TABLE IF NOT EXISTS {{schema}}.cdc_relay_migrations (
  name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (name)
) ENGINE = InnoDB;
