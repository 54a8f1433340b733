import { stopSoftly } from '../stack/one-outbox.ts';
import { say } from '../stack/progress.ts';
import { endOffsets, watchArrivals } from './arrivals.ts';
import { loadBacklog } from './backlog.ts';
import { cpuMs } from './cpu-ms.ts';
import { readBack } from './read-back.ts';
import {
  AGGREGATES,
  binlogEnd,
  checkpointReaches,
  DATABASE,
  MYSQL,
  openStand,
  PARTITIONS,
  type StandOptions,
} from './stand.ts';

/** Carried before the measurement: a broker that has just come up runs code that is not compiled yet. */
const FIRST_ROWS = 50_000;
const FIRST_PER_TRANSACTION = 500;

export interface DrainOptions extends StandOptions {
  readonly rows: number;
  readonly perTransaction: number;
}

/** How fast a relay that starts behind a backlog works it off. */
export async function drain(options: DrainOptions): Promise<Record<string, unknown>> {
  const { rows, perTransaction, retire, compression } = options;
  await using stand = await openStand(options);
  const { connection, client } = stand;
  const { host, port, user, password } = stand.mysql;

  // A first run leaves a checkpoint in front of the backlog, and servers that have worked.
  const place = { host, port, user, password, database: DATABASE };
  const first = await stand.startRelay();
  await loadBacklog(connection, place, 0, FIRST_ROWS, FIRST_PER_TRANSACTION);
  await checkpointReaches(connection, first, await binlogEnd(connection));
  await stopSoftly(first);

  const loadedFrom = performance.now();
  await loadBacklog(connection, place, FIRST_ROWS, rows, perTransaction);
  const end = await binlogEnd(connection);
  say(`loaded ${rows} rows in ${Math.round(performance.now() - loadedFrom)} ms`);

  const admin = client.admin();
  await admin.connect();
  const before = await endOffsets(admin);
  const launchedMs = performance.now();
  const relay = await stand.launchRelay();
  const { firstMs, firstCount, lastMs } = await watchArrivals(admin, relay, before, rows);
  await checkpointReaches(connection, relay, end);
  const settledMs = performance.now();
  const figures = { peakRssBytes: relay.peakRssBytes(), cpuMs: await cpuMs(relay.pid) };
  await stopSoftly(relay);

  const records = await endOffsets(admin);
  await admin.disconnect();
  const back = await readBack(client, records);
  const left = await unretired(connection, retire);
  if (back.distinct !== FIRST_ROWS + rows || back.reordered !== 0 || left !== 0) {
    throw new Error(`wrong result: ${JSON.stringify({ ...back, rows, left })}`);
  }
  const perSecond = (fromMs: number, toMs: number, count: number): number =>
    Math.round((count * 1000) / (toMs - fromMs));
  const arrivedPerS = perSecond(firstMs, lastMs, rows - firstCount);
  const settledPerS = perSecond(firstMs, settledMs, rows);
  return {
    bench: 'drain',
    rowsPerS: retire === 'keep' ? arrivedPerS : settledPerS,
    rowsPerSUntil: retire === 'keep' ? 'in Kafka' : 'retired',
    arrivedPerS,
    settledPerS,
    ...figures,
    firstRecordMs: Math.round(firstMs - launchedMs),
    ...{ rows, perTransaction, retire, compression, partitions: PARTITIONS, aggregates: AGGREGATES },
    duplicates: back.duplicates,
    mysql: MYSQL,
  };
}

async function unretired(connection: Awaited<ReturnType<typeof openStand>>['connection'], retire: string) {
  if (retire === 'keep') return 0;
  const [rows] = await connection.query("SELECT COUNT(*) AS n FROM outbox WHERE status <> 'published'");
  return (rows as { n: number }[])[0].n;
}
