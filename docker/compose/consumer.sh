# What a consumer sees: headers, key, value.
until /opt/kafka/bin/kafka-topics.sh --bootstrap-server kafka:9092 --describe --topic orders > /dev/null 2>&1; do
  sleep 1
done
exec /opt/kafka/bin/kafka-console-consumer.sh --bootstrap-server kafka:9092 --topic orders --from-beginning \
  --formatter-property print.headers=true --formatter-property print.key=true
