import { createConnection, type RowDataPacket } from 'mysql2/promise';
import type { DatabaseServer } from './handles.ts';
import { logHead } from './log-head.ts';

const CATCH_UP_S = 30;
/** Of a log: its first event. */
const FIRST_OFFSET = 4;

export interface Following {
  /** `file`: by file and position, as servers without GTIDs do. Default: by GTID auto-position. */
  readonly by?: 'gtid' | 'file';
}

/**
 * Makes `replica` follow `source` and waits until it has everything of this moment. Until it is promoted nobody but
 * replication writes to it.
 */
export async function follow(
  replica: DatabaseServer,
  source: DatabaseServer,
  { by = 'gtid' }: Following = {},
): Promise<void> {
  const [{ Log_name: firstFile }] = await ask(source, 'SHOW BINARY LOGS');
  const from = by === 'gtid' ? 'SOURCE_AUTO_POSITION = 1' : 'SOURCE_LOG_FILE = ?, SOURCE_LOG_POS = ?';
  await ask(
    replica,
    `CHANGE REPLICATION SOURCE TO SOURCE_HOST = ?, SOURCE_PORT = ?, SOURCE_USER = ?, SOURCE_PASSWORD = ?,
     GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, ${from}`,
    [
      ...[source.internal.host, source.internal.port, source.user, source.password],
      ...(by === 'gtid' ? [] : [String(firstFile), FIRST_OFFSET]),
    ],
  );
  await ask(replica, 'SET GLOBAL super_read_only = ON');
  await ask(replica, 'START REPLICA');
  await caughtUp(replica, source);
}

/** Waits until `replica` has everything that `source` has committed by now. */
export async function caughtUp(replica: DatabaseServer, source: DatabaseServer): Promise<void> {
  const { file, offset } = await logHead((text) => ask(source, text));
  const [{ answer }] = await ask(replica, 'SELECT SOURCE_POS_WAIT(?, ?, ?) AS answer', [file, offset, CATCH_UP_S]);
  if (answer === null || Number(answer) < 0) throw new Error(`the replica has not caught up after ${CATCH_UP_S} s`);
}

/** From now on it falls behind. */
export async function fallBehind(replica: DatabaseServer): Promise<void> {
  await ask(replica, 'STOP REPLICA');
}

/** It is nobody's replica any more and takes writes; what it had not applied is lost to it. */
export async function promote(replica: DatabaseServer): Promise<void> {
  await ask(replica, 'STOP REPLICA');
  await ask(replica, 'RESET REPLICA ALL');
  await ask(replica, 'SET GLOBAL super_read_only = OFF');
  await ask(replica, 'SET GLOBAL read_only = OFF');
}

/** It takes no more writes, from nobody. */
export async function demote(source: DatabaseServer): Promise<void> {
  await ask(source, 'SET GLOBAL super_read_only = ON');
}

async function ask(server: DatabaseServer, sql: string, values: unknown[] = []): Promise<RowDataPacket[]> {
  const { host, port, user, password } = server;
  const connection = await createConnection({ host, port, user, password });
  try {
    const [rows] = await connection.query<RowDataPacket[]>(sql, values);
    return rows;
  } finally {
    connection.destroy();
  }
}
