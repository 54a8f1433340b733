import { createBinlogSource } from '../binlog/binlog-source.ts';
import { fault } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import { type Checkpoint, comparePositions, formatGtid, formatPosition, type Position } from '../model/position.ts';
import { Form, type OutboxRow, type RowCursor } from '../model/row.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { TransactionGroup } from '../model/source.ts';
import { IdLiterals } from '../store/id-literals.ts';
import type { Session } from '../store/session.ts';

/** Rows of one statement, or of one transaction of statements. */
const BATCH_ROWS = 500;

/**
 * Rows that were committed between the place where somebody else stopped reading and another one, from the log: in the
 * order of their commits. The table as it was then has no states, so every row is meant. `silentMs`: what has sent
 * nothing for so long has nothing more before `to`; null: the log is known to go on behind it. Throws a `RelayError`.
 */
export async function rowsSince(
  settings: Settings,
  outbox: OutboxSettings,
  from: Checkpoint,
  to: Position,
  gtidsBefore: string | null,
  session: Session,
  log: Log,
  silentMs: number | null,
): Promise<RowId[]> {
  if (comparePositions(from.position, to) >= 0) return [];
  const source = createBinlogSource({
    mysql: settings.mysql,
    outboxes: [{ ...outbox, retire: 'keep', columns: { ...outbox.columns, status: null, availableAt: null } }],
    maxTransactionBytes: settings.relay.maxTransactionBytes,
    log,
  });
  const stop = new AbortController();
  const ids: RowId[] = [];
  let isFirst = true;
  const silence = silentMs === null ? null : setTimeout(() => stop.abort(), silentMs);
  try {
    for await (const group of source.stream(from, stop.signal)) {
      silence?.refresh();
      if (isFirst && gtidsBefore !== null) await checkGtid(session, group, gtidsBefore);
      isFirst = false;
      for (const transaction of group.transactions) {
        if (transaction.undecodable !== null) {
          throw fault(
            'BINLOG_UNSUPPORTED',
            'halt',
            `what came since cannot be read: ${transaction.undecodable.detail}`,
          );
        }
        if (comparePositions(transaction.end, to) > 0) break;
        if (transaction.pieces === null) collect(transaction.rows(), ids);
        else for await (const rows of transaction.pieces(stop.signal)) collect(rows, ids);
      }
      if (comparePositions(group.reached, to) >= 0) return ids;
    }
    if (stop.signal.aborted) return ids;
  } finally {
    if (silence !== null) clearTimeout(silence);
    stop.abort();
  }
  throw fault('BINLOG_CONNECTION_LOST', 'retry', `the log ended before ${formatPosition(to)}`);
}

/** The position is another server's where what comes behind it had been executed before it. */
async function checkGtid(session: Session, { transactions, skipped }: TransactionGroup, before: string): Promise<void> {
  const [first] = transactions.length === 0 ? skipped : transactions[0].skipped;
  const gtid =
    (first as typeof first | undefined) === undefined
      ? (transactions.at(0)?.gtid ?? null)
      : { sid: first.sid, gno: first.first };
  if (gtid === null || gtid.sid.length < UUID_LENGTH) return;
  const [row] = await session.rows('comparing GTIDs', 'SELECT GTID_SUBSET(?, ?) AS known', [formatGtid(gtid), before]);
  if (Number(row['known']) !== 1) return;
  throw fault(
    'BINLOG_POSITION_UNUSABLE',
    'halt',
    `the saved file and its GTIDs do not belong together: ${formatGtid(gtid)} comes behind the position and is in the set; the file is another server's`,
  );
}

const UUID_LENGTH = 36;

function collect(rows: RowCursor, ids: RowId[]): void {
  while (rows.next()) ids.push(idOf(rows.row));
}

function idOf({ idBytes, idLow, idHigh }: OutboxRow): RowId {
  if (idBytes.form !== Form.Null) return idBytes.buffer.toString('hex', idBytes.start, idBytes.end);
  return (BigInt(idHigh) << 32n) | BigInt(idLow);
}

/** How many of the rows are still in the table. A plain read. */
export async function countThere(session: Session, outbox: OutboxSettings, ids: readonly RowId[]): Promise<number> {
  const literals = new IdLiterals(outbox);
  const name = quoteTable(outbox.schema, outbox.table);
  let there = 0;
  for (let at = 0; at < ids.length; at += BATCH_ROWS) {
    const list = await literals.list(session, rowIds(ids.slice(at, at + BATCH_ROWS)));
    const [row] = await session.rows(
      `looking for rows of ${name}`,
      `SELECT COUNT(*) AS there FROM ${name} FORCE INDEX (PRIMARY) WHERE ${quoteIdentifier(outbox.columns.id)} IN (${list})`,
    );
    there += Number(row['there']);
  }
  return there;
}

/**
 * Makes rows pending that count as published without ever having been: due one microsecond after the other, so that
 * they are delivered in this order. Returns how many.
 */
export async function makePending(session: Session, outbox: OutboxSettings, ids: readonly RowId[]): Promise<number> {
  const { schema, table, columns, retire } = outbox;
  const name = quoteTable(schema, table);
  const doing = `making rows of ${name} pending`;
  const literals = new IdLiterals(outbox);
  const status = quoteIdentifier(columns.status!);
  const never = retire === 'mark' ? `AND ${quoteIdentifier(columns.publishedAt!)} IS NULL` : '';
  const [row] = await session.rows(
    doing,
    'SELECT CAST(UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AS CHAR) AS first_due',
    [ids.length],
  );
  const first = String(row['first_due']);
  let done = 0;
  for (let from = 0; from < ids.length; from += BATCH_ROWS) {
    await session.change(doing, 'START TRANSACTION');
    for (let n = from; n < Math.min(ids.length, from + BATCH_ROWS); n++) {
      const { matched } = await session.change(
        doing,
        `UPDATE ${name} FORCE INDEX (PRIMARY) SET ${status} = 'pending',
           ${quoteIdentifier(columns.availableAt!)} = CAST(? AS DATETIME(6)) + INTERVAL ? MICROSECOND
         WHERE ${quoteIdentifier(columns.id)} = ${await literals.list(session, rowIds([ids[n]]))}
           AND ${status} = 'published' ${never}`,
        [first, n],
      );
      done += matched;
    }
    await session.change(doing, 'COMMIT');
  }
  return done;
}
