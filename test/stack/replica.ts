import { createConnection, type RowDataPacket } from 'mysql2/promise';
import type { DatabaseServer } from './handles.ts';

const CATCH_UP_S = 30;

/** Makes `replica` follow `source` by GTID auto-position and waits until it has everything of this moment. */
export async function follow(replica: DatabaseServer, source: DatabaseServer): Promise<void> {
  const gtidSet = String(await ask(source, 'SELECT @@GLOBAL.gtid_executed'));
  const connection = await connect(replica);
  try {
    await connection.query(
      `CHANGE REPLICATION SOURCE TO SOURCE_HOST = ?, SOURCE_PORT = ?, SOURCE_USER = ?, SOURCE_PASSWORD = ?,
       SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1`,
      [source.internal.host, source.internal.port, source.user, source.password],
    );
    await connection.query('START REPLICA');
  } finally {
    connection.destroy();
  }
  const timedOut = await ask(replica, 'SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)', [gtidSet, CATCH_UP_S]);
  if (timedOut !== 0) throw new Error(`the replica has not caught up after ${CATCH_UP_S} s`);
}

/** The one value of a query's one row. */
async function ask(server: DatabaseServer, sql: string, values: unknown[] = []): Promise<unknown> {
  const connection = await connect(server);
  try {
    const [rows] = await connection.query<RowDataPacket[]>(sql, values);
    return Object.values(rows[0])[0];
  } finally {
    connection.destroy();
  }
}

function connect({ host, port, user, password }: DatabaseServer) {
  return createConnection({ host, port, user, password });
}
