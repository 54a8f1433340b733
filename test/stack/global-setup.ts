import type { TestProject } from 'vitest/node';
import { givenKafka, givenMysql } from './given.ts';
import type { DatabaseServer, KafkaCluster } from './handles.ts';
import { startKafka, startMysql } from './stack.ts';

/**
 * The MySQL and the Kafka that all test files share, once a run. Each vitest project loads this file for itself, so
 * what they share is counted in a global.
 */

interface Shared {
  users: number;
  readonly servers: Promise<readonly [DatabaseServer, KafkaCluster]>;
}

declare module 'vitest' {
  export interface ProvidedContext {
    readonly mysql: { readonly host: string; readonly port: number; readonly user: string; readonly password: string };
    readonly brokers: readonly string[];
  }
}

const holder = globalThis as typeof globalThis & { cdcRelayTestServers?: Shared };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const shared = (holder.cdcRelayTestServers ??= { users: 0, servers: startShared() });
  shared.users++;
  const [mysql, kafka] = await shared.servers;
  const { host, port, user, password } = mysql;
  project.provide('mysql', { host, port, user, password });
  project.provide('brokers', kafka.brokers);
  return async () => {
    if (--shared.users > 0) return;
    delete holder.cdcRelayTestServers;
    await Promise.all([mysql.dispose(), kafka.dispose()]);
  };
}

async function startShared(): Promise<readonly [DatabaseServer, KafkaCluster]> {
  const mysql = givenMysql().then((given) => given ?? startMysql());
  const kafka = Promise.resolve(givenKafka() ?? startKafka());
  return Promise.all([mysql, kafka]);
}
