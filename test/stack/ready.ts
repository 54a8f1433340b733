import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { kafkaClient } from './kafka-client.ts';

export interface Ready {
  /** The server as it appears in messages. */
  readonly name: string;
  /** Throws while the server does not serve yet. */
  readonly ready: () => Promise<unknown>;
  readonly readyMs: number;
}

/** Waits until the server serves; `dead` says why it never will, as soon as that is known. */
export async function serves(server: Ready, dead: () => Promise<string | null>): Promise<void> {
  const deadline = performance.now() + server.readyMs;
  for (;;) {
    try {
      await server.ready();
      return;
    } catch (error) {
      const why = await dead();
      if (why !== null) throw new Error(`${server.name} does not start: ${why}`, { cause: error });
      if (performance.now() > deadline) {
        throw new Error(`${server.name} does not serve after ${server.readyMs} ms`, { cause: error });
      }
    }
    await sleep(50);
  }
}

/** Its version, from a database that serves. */
export async function databaseVersion(at: {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly tls: boolean;
}): Promise<string> {
  const { tls, ...place } = at;
  const ssl = tls ? { ssl: { rejectUnauthorized: false } } : {};
  const connection = await createConnection({ ...place, ...ssl, connectTimeout: 1000 });
  try {
    const [rows] = await connection.query<RowDataPacket[]>('SELECT VERSION() AS version');
    return String(rows[0]['version']);
  } finally {
    connection.destroy();
  }
}

/** Throws unless the broker answers and is in its own metadata: registered and not fenced. */
export async function brokerServes(address: string, id: number): Promise<void> {
  const once = { connectionTimeout: 1000, requestTimeout: 2000, retry: { retries: 0 } };
  const admin = kafkaClient([address], once).admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    if (!cluster.brokers.some((broker) => broker.nodeId === id)) throw new Error(`broker ${id} is not registered yet`);
  } finally {
    await admin.disconnect();
  }
}
