import type { TestProject } from 'vitest/node';
import { givenKafka, givenMysql } from './given.ts';
import type { DatabaseServer, KafkaCluster } from './handles.ts';
import { startKafka, startMariadb, startMysql } from './stack.ts';

/**
 * The servers that all test files share, once a run. Each vitest project loads this file for itself, so what they
 * share is counted in a global. The project `mariadb` gets a MariaDB in the place of MySQL.
 */

interface Shared<T> {
  users: number;
  readonly started: Promise<T>;
}

type Flavour = 'mysql' | 'mariadb';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly flavour: Flavour;
    readonly mysql: { readonly host: string; readonly port: number; readonly user: string; readonly password: string };
    readonly brokers: readonly string[];
  }
}

const holder = globalThis as typeof globalThis & {
  cdcRelayTestServers?: Map<Flavour | 'kafka', Shared<DatabaseServer | KafkaCluster>>;
};
const shared = (holder.cdcRelayTestServers ??= new Map<Flavour | 'kafka', Shared<DatabaseServer | KafkaCluster>>());

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const flavour = project.name === 'mariadb' ? 'mariadb' : 'mysql';
  const database = share(flavour, () => startShared(flavour));
  const cluster = share('kafka', () => Promise.resolve(givenKafka() ?? startKafka()));
  const { host, port, user, password } = await database.started;
  project.provide('flavour', flavour);
  project.provide('mysql', { host, port, user, password });
  project.provide('brokers', (await cluster.started).brokers);
  return async () => {
    await Promise.all([leave(flavour), leave('kafka')]);
  };
}

async function startShared(flavour: Flavour): Promise<DatabaseServer> {
  return flavour === 'mariadb' ? startMariadb() : ((await givenMysql()) ?? startMysql());
}

function share<T extends DatabaseServer | KafkaCluster>(name: Flavour | 'kafka', start: () => Promise<T>): Shared<T> {
  const server = (shared.get(name) as Shared<T> | undefined) ?? { users: 0, started: start() };
  shared.set(name, server);
  server.users++;
  return server;
}

async function leave(name: Flavour | 'kafka'): Promise<void> {
  const server = shared.get(name);
  if (server === undefined || --server.users > 0) return;
  shared.delete(name);
  await (await server.started).dispose();
}
