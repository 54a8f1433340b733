import { rename, rm, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { say } from './progress.ts';
import { startKafka, startMysql } from './stack.ts';

/** `npm run stack`: one MySQL and one Kafka until Ctrl-C. `--json FILE` writes their addresses, `--durable` flushes. */
const { values } = parseArgs({ options: { json: { type: 'string' }, durable: { type: 'boolean', default: false } } });

const startedAt = performance.now();
say('starting MySQL and Kafka ...');
const [mysql, kafka] = await Promise.all([startMysql({ durable: values.durable }), startKafka()]);
say(`both serve after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
const addresses = {
  mysql: { host: mysql.host, port: mysql.port, user: mysql.user, password: mysql.password, pid: mysql.pid },
  kafka: { brokers: kafka.brokers, pid: kafka.nodes[0]?.pid ?? null },
};
if (values.json !== undefined) {
  await writeFile(`${values.json}.new`, `${JSON.stringify(addresses)}\n`);
  await rename(`${values.json}.new`, values.json);
}
process.stdout.write(`MySQL ${mysql.version}  mysql://${mysql.user}@${mysql.host}:${mysql.port}\n`);
process.stdout.write(`Kafka  ${kafka.brokers.join(',')}\n`);
say('Ctrl-C ends both and removes their data');

const forever = setInterval(() => undefined, 60_000);
const end = async () => {
  if (values.json !== undefined) await rm(values.json, { force: true });
  await Promise.all([mysql.dispose(), kafka.dispose()]);
  clearInterval(forever);
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end());
