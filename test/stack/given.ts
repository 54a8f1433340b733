import type { Controls, DatabaseServer, KafkaCluster } from './handles.ts';
import { databaseVersion } from './ready.ts';

/** The MySQL at CDC_RELAY_TEST_MYSQL (`mysql://user:password@host:port`); null when it is not set. */
export async function givenMysql(): Promise<DatabaseServer | null> {
  const address = process.env['CDC_RELAY_TEST_MYSQL'] ?? '';
  if (address === '') return null;
  if (!URL.canParse(address) || new URL(address).protocol !== 'mysql:') {
    throw new Error('CDC_RELAY_TEST_MYSQL must read mysql://user:password@host:port');
  }
  const url = new URL(address);
  const place = {
    host: url.hostname,
    port: url.port === '' ? 3306 : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  };
  const version = await databaseVersion({ ...place, tls: false });
  const controls = notOurs('the MySQL of CDC_RELAY_TEST_MYSQL');
  return { ...place, ...controls, ...nothingToDispose(), version, internal: place };
}

/** The Kafka at CDC_RELAY_TEST_KAFKA (`host:port,...`); null when it is not set. */
export function givenKafka(): KafkaCluster | null {
  const addresses = process.env['CDC_RELAY_TEST_KAFKA'] ?? '';
  if (addresses === '') return null;
  const brokers = addresses.split(',').map((address) => address.trim());
  for (const broker of brokers) {
    if (!/^\S+:\d+$/.test(broker)) throw new Error('CDC_RELAY_TEST_KAFKA must read host:port,host:port,...');
  }
  const listener = (name: string): never => {
    throw new Error(`the Kafka of CDC_RELAY_TEST_KAFKA has no listener ${name} that a test could know`);
  };
  return { brokers, controllable: false, nodes: [], listener, ...nothingToDispose() };
}

function notOurs(name: string): Controls {
  const refuse = (): Promise<never> =>
    Promise.reject(new Error(`${name} is not the tests' own: they cannot freeze, kill or start it`));
  return { controllable: false, pid: null, freeze: refuse, thaw: refuse, kill: refuse, stop: refuse, start: refuse };
}

function nothingToDispose(): Pick<DatabaseServer, 'dispose' | typeof Symbol.asyncDispose> {
  const nothing = () => Promise.resolve();
  return { dispose: nothing, [Symbol.asyncDispose]: nothing };
}
