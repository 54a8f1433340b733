import type { Retire } from '../../src/model/settings.ts';
import type { DatabaseServer, KafkaCluster } from './handles.ts';
import { type CliProcess, startCli } from './relay-process.ts';

export interface OneOutbox {
  readonly mysql: DatabaseServer;
  readonly kafka: KafkaCluster;
  readonly database: string;
  readonly retire: Retire;
  readonly compression?: string;
}

/** The configuration of a relay for the table `<database>.outbox`, as shipped; everything else is the default. */
export function oneOutboxConfig({ mysql, kafka, database, retire, compression }: OneOutbox): object {
  const { host, port, user, password } = mysql;
  return {
    name: database,
    start: 'head',
    mysql: { host, port, user, password, database },
    kafka: { brokers: kafka.brokers, ...(compression === undefined ? {} : { compression }) },
    outboxes: [{ table: `${database}.outbox`, topic: { column: 'topic' }, retire }],
    http: { port: 0 },
    log: { level: 'info', format: 'json' },
  };
}

/** `cdc-relay migrate`. */
export async function migrate(config: object): Promise<void> {
  await using command = await startCli(['migrate'], { config });
  const { code } = await command.exited;
  if (code !== 0) throw new Error(`cdc-relay migrate ended with ${code}: ${command.stderr()}`);
}

/** SIGTERM: the relay drains and flushes. Throws when it does not end with 0. */
export async function stopSoftly(relay: CliProcess): Promise<void> {
  const { code, signal } = await relay.kill('SIGTERM');
  if (code !== 0) throw new Error(`the relay ended with ${signal ?? code}:\n${relay.stderr().slice(-3000)}`);
}
