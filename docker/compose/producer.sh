# An order service: each order and its event are committed together.
MYSQL_PWD=$(cat /run/secrets/mysql-producer)
export MYSQL_PWD

orders() {
  while sleep 0.2; do
    total=$((RANDOM % 500)).$((10 + RANDOM % 90))
    cat << SQL
START TRANSACTION;
INSERT INTO orders (customer, total) VALUES ('customer-$((RANDOM % 20))', $total);
INSERT INTO outbox (topic, aggregate_id, event_type, payload)
  VALUES ('orders', CONCAT('order-', LAST_INSERT_ID()), 'OrderPlaced', JSON_OBJECT('order', LAST_INSERT_ID(), 'total', $total));
COMMIT;
SQL
  done
}

until orders | mysql --protocol=tcp -h mysql -u producer app; do
  echo 'MySQL is away; trying again'
  sleep 1
done
