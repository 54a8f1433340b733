import { randomBytes, randomInt } from 'node:crypto';
import { createBinlogSource } from '../binlog/binlog-source.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import type { Transaction, TransactionGroup } from '../model/source.ts';
import { asked } from './asked.ts';
import { CANARY_OUTBOX } from './canary-outbox.ts';
import type { ServerFacts } from './server-facts.ts';
import { readHead, readServerFacts } from '../store/server.ts';
import type { Session } from '../store/session.ts';

/** From the write to the row in the stream. */
export const CANARY_WITHIN_MS = 5_000;

const TABLE = 'cdc_relay_canary';
/** In the upper half, where hand-numbered servers are not; not the relay's own, whose dump the server would end. */
const FIRST_SERVER_ID = 0x8000_0000;
const MAX_TRANSACTION_BYTES = 1 << 20;
const LEFT_OVER_HOURS = 24;
/** What has come by in the row's place and cannot be read is taken for the row when that does not follow soon. */
const IN_ITS_PLACE_MS = 1_000;

export type Canary =
  /** By this machine's clock. */
  | { readonly as: 'came by'; readonly writtenAt: string; readonly afterMs: number }
  /** `why`: something came by in its place that cannot be read, whosever it is; null: nothing did. */
  | { readonly as: 'missing'; readonly withinMs: number; readonly why: Fault | null }
  /** The stream could not be opened, or ended. */
  | { readonly as: 'no stream'; readonly why: Fault }
  /** `what` could not be done. */
  | { readonly as: 'not made'; readonly what: string; readonly why: Fault };

/**
 * Writes rows into a table of the relay's own, as an application would, and reads the log for them, over the very source
 * that `run` uses. The first row shows that rows come by, the second, written when the stream is known to run, how fast.
 */
export async function flyCanary(
  session: Session,
  { variables }: Pick<ServerFacts, 'variables'>,
  settings: Settings,
  log: Log,
  withinMs = CANARY_WITHIN_MS,
): Promise<Canary> {
  const tableName = quoteTable(settings.mysql.database, TABLE);
  const tokens = [randomBytes(16), randomBytes(16)];
  const write = (token: Buffer) =>
    session.change('writing the canary', `INSERT INTO ${tableName} (aggregate_id, idempotency_key) VALUES (?, ?)`, [
      settings.relay.name,
      token,
    ]);
  let what = 'asking where the log ends';
  const stop = new AbortController();
  let rows: AsyncGenerator<Seen> | null = null;
  try {
    const from = await readHead(session, await readServerFacts(session));
    await writeAsOthersDo(session, variables);
    what = `writing a row of ${TABLE}`;
    await write(tokens[0]);
    rows = canaryRows(settings, log, from, stop.signal);
    const connectMs = settings.mysql.connectTimeoutMs;
    const first = await seen(rows, tokens[0], connectMs + withinMs, stop);
    if (first !== null) return first;
    const writtenAt = new Date().toISOString();
    const writtenMs = performance.now();
    await write(tokens[1]);
    const second = await seen(rows, tokens[1], withinMs, stop);
    return second ?? { as: 'came by', writtenAt, afterMs: performance.now() - writtenMs };
  } catch (error) {
    if (error instanceof RelayError) return { as: 'not made', what, why: error.fault };
    throw error;
  } finally {
    stop.abort();
    await rows?.return(undefined).catch(() => undefined);
    await cleanUp(session, tableName, tokens);
  }
}

interface Seen {
  readonly key: Buffer | null;
  readonly undecodable: Fault | null;
}

async function* canaryRows(
  settings: Settings,
  log: Log,
  from: Awaited<ReturnType<typeof readHead>>,
  signal: AbortSignal,
): AsyncGenerator<Seen> {
  const { mysql } = settings;
  const source = createBinlogSource({
    mysql: { ...mysql, serverId: randomInt(FIRST_SERVER_ID, 2 ** 32 - 1) },
    outboxes: [{ ...CANARY_OUTBOX, schema: mysql.database, table: TABLE }],
    maxTransactionBytes: MAX_TRANSACTION_BYTES,
    log,
  });
  try {
    for await (const group of source.stream(from, signal)) yield* keysIn(group);
  } catch (error) {
    // A log that does not name its columns is read ahead for statements that changed them, by the next stream.
    if (!(error instanceof RelayError) || error.fault.code !== 'MYSQL_SCHEMA') throw error;
    for await (const group of source.stream(from, signal)) yield* keysIn(group);
  }
}

function* keysIn({ transactions }: TransactionGroup): Generator<Seen> {
  for (const transaction of transactions) {
    if (transaction.undecodable !== null) yield { key: null, undecodable: transaction.undecodable };
    else yield* keysOf(transaction);
  }
}

function* keysOf(transaction: Transaction): Generator<Seen> {
  const cursor = transaction.rows();
  while (cursor.next()) {
    const { buffer, start, end } = cursor.row.idempotencyKey;
    yield { key: Buffer.from(buffer.subarray(start, end)), undecodable: null };
  }
}

/** Null: the row has come by. */
async function seen(
  rows: AsyncGenerator<Seen>,
  token: Buffer,
  withinMs: number,
  stop: AbortController,
): Promise<Canary | null> {
  const abort = () => stop.abort();
  let timer = setTimeout(abort, withinMs);
  let why: Fault | null = null;
  try {
    for (;;) {
      const next = await rows.next();
      if (next.done === true) return { as: 'missing', withinMs, why };
      const { key, undecodable } = next.value;
      if (undecodable !== null && why === null) {
        clearTimeout(timer);
        timer = setTimeout(abort, IN_ITS_PLACE_MS);
      }
      why = undecodable ?? why;
      if (key !== null && isToken(key, token)) return null;
    }
  } catch (error) {
    if (error instanceof RelayError) return { as: 'no stream', why: error.fault };
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The relay's sessions are READ COMMITTED and log short rows; one of an application has what the server gives it. At
 * REPEATABLE READ, and there alone, MIXED writes the row as a statement.
 */
async function writeAsOthersDo(session: Session, variables: ServerFacts['variables']): Promise<void> {
  const doing = 'making the session that of an application';
  const isolation = variables.get('transaction_isolation') ?? variables.get('tx_isolation');
  const level = ISOLATION_LEVELS.find((name) => name === isolation?.replaceAll('-', ' '));
  if (level !== undefined) await session.change(doing, `SET SESSION TRANSACTION ISOLATION LEVEL ${level}`);
  // Who may not set it has the server's already.
  await asked(() => session.change(doing, 'SET SESSION binlog_row_image = @@GLOBAL.binlog_row_image'));
}

const ISOLATION_LEVELS = ['READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'];

/** The log cuts trailing zero bytes of BINARY(16). */
function isToken(key: Buffer, token: Buffer): boolean {
  return token.subarray(0, key.length).equals(key) && token.subarray(key.length).every((byte) => byte === 0);
}

async function cleanUp(session: Session, table: string, tokens: readonly Buffer[]): Promise<void> {
  const sql = `DELETE FROM ${table} WHERE idempotency_key IN (?, ?)
    OR created_at < UTC_TIMESTAMP(6) - INTERVAL ${LEFT_OVER_HOURS} HOUR`;
  // What stays is deleted by a later one.
  await session.change('deleting the canary', sql, tokens).catch(() => undefined);
}
