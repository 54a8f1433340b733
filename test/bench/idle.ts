import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from 'mysql2/promise';
import { stopSoftly } from '../stack/one-outbox.ts';
import { loadBacklog } from './backlog.ts';
import { cpuMs } from './cpu-ms.ts';
import { binlogEnd, checkpointReaches, DATABASE, MYSQL, openStand, type StandOptions } from './stand.ts';

/** Rows that flow before the rest: an idle relay is one that has worked. */
const ROWS = 1_000;
/** After the last checkpoint: timers and garbage of the work run out. */
const SETTLE_MS = 3_000;

/** What a relay without work costs. */
export async function idle(options: StandOptions & { readonly seconds: number }): Promise<Record<string, unknown>> {
  const { seconds, retire } = options;
  await using stand = await openStand(options);
  const { connection, mysql } = stand;
  const relay = await stand.startRelay();
  const { host, port, user, password } = mysql;
  await loadBacklog(connection, { host, port, user, password, database: DATABASE }, 0, ROWS, 10);
  await checkpointReaches(connection, relay, await binlogEnd(connection));
  await sleep(SETTLE_MS);

  const before = await observe(connection, relay.pid);
  await sleep(seconds * 1000);
  const after = await observe(connection, relay.pid);
  await stopSoftly(relay);
  const change = (name: string): number => (after.counters.get(name) ?? 0) - (before.counters.get(name) ?? 0);
  return {
    bench: 'idle',
    cpuPercent: Math.round(((after.cpuMs - before.cpuMs) / (after.atMs - before.atMs)) * 10_000) / 100,
    mysqlWrites: WRITES.reduce((sum, name) => sum + change(name), 0),
    binlogBytes: after.end.file === before.end.file ? after.end.position - before.end.position : 'rotated',
    mysqlQuestions: change('Questions'),
    ...{ seconds, retire, mysql: MYSQL },
  };
}

/** Statements that write, and rows written by whatever statement. */
const WRITES = [
  ...['Com_insert', 'Com_update', 'Com_delete', 'Com_replace', 'Com_commit'],
  ...['Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted'],
];

async function observe(connection: Connection, pid: number) {
  const [rows] = await connection.query('SHOW GLOBAL STATUS WHERE Variable_name IN (?)', [[...WRITES, 'Questions']]);
  const counters = new Map(
    (rows as { Variable_name: string; Value: string }[]).map((row) => [row.Variable_name, Number(row.Value)]),
  );
  return { atMs: performance.now(), cpuMs: await cpuMs(pid), counters, end: await binlogEnd(connection) };
}
