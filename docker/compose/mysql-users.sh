# Read by the image's set-up (once, while the data directory is made): the users, with no more rights than they need.
docker_process_sql <<SQL
CREATE USER 'cdc_relay'@'%' IDENTIFIED BY '$(cat /run/secrets/mysql-relay)';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'cdc_relay'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER ON app.* TO 'cdc_relay'@'%';
GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'cdc_relay'@'%';

CREATE TABLE app.orders (
  id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  customer VARCHAR(32) NOT NULL,
  total DECIMAL(8, 2) NOT NULL
);
CREATE USER 'producer'@'%' IDENTIFIED BY '$(cat /run/secrets/mysql-producer)';
GRANT INSERT ON app.* TO 'producer'@'%';
SQL
