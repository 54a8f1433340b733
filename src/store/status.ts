import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { comparePositions, fileNumber, type Position } from '../model/position.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { lockName } from './leadership.ts';
import { readHead, readServerFacts } from './server.ts';
import type { Row, Session } from './session.ts';

/** What the database says of the relay, also when the relay is dead. Times are ages by the server's clock. */
export interface StatusFacts {
  readonly server: { readonly uuid: string; readonly version: string };
  readonly leader: { readonly owner: string; readonly epoch: number } | null;
  /** Null before the first start. */
  readonly checkpoint: (Position & { readonly savedMsAgo: number }) | null;
  readonly head: Position;
  /** Bytes of binlog between checkpoint and head; null when the checkpoint's file is gone. */
  readonly behindBytes: number | null;
  readonly outboxes: readonly OutboxFacts[];
}

export interface OutboxFacts {
  readonly table: string;
  /** Null where the table has no status column. */
  readonly waiting: {
    readonly pending: number;
    readonly oldestPendingMs: number | null;
    readonly delayed: number;
    readonly failed: number;
  } | null;
}

export async function readStatus(session: Session, settings: Settings): Promise<StatusFacts> {
  const facts = await readServerFacts(session);
  const head = (await readHead(session, facts)).position;
  const offsets = await readOffsets(session, settings);
  const checkpoint = offsets?.checkpoint ?? null;
  const lock = lockName(settings.mysql.database, settings.relay.name);
  const [holder] = await session.rows('looking for the leader', 'SELECT IS_USED_LOCK(?) AS holder', [lock]);
  const outboxes: OutboxFacts[] = [];
  for (const outbox of settings.outboxes) outboxes.push(await readOutbox(session, outbox));
  return {
    server: { uuid: facts.serverUuid, version: facts.version },
    leader: holder['holder'] === null || offsets === null ? null : { owner: offsets.owner, epoch: offsets.epoch },
    checkpoint,
    head,
    behindBytes: checkpoint === null ? null : await bytesBetween(session, checkpoint, head),
    outboxes,
  };
}

interface Offsets {
  readonly owner: string;
  readonly epoch: number;
  readonly checkpoint: StatusFacts['checkpoint'];
}

async function readOffsets(session: Session, settings: Settings): Promise<Offsets | null> {
  const [row] = (await session.rows(
    'reading the checkpoint',
    `SELECT file, position, epoch, COALESCE(owner, '') AS owner,
       TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS saved_ms_ago
     FROM ${quoteTable(settings.mysql.database, 'cdc_relay_offsets')} WHERE name = ?`,
    [settings.relay.name],
  )) as (Row | undefined)[];
  if (row === undefined) return null;
  const { file } = row;
  return {
    owner: row['owner'] as string,
    epoch: Number(row['epoch']),
    checkpoint:
      typeof file === 'string'
        ? { file, offset: Number(row['position']), savedMsAgo: Number(row['saved_ms_ago']) }
        : null,
  };
}

async function readOutbox(session: Session, outbox: OutboxSettings): Promise<OutboxFacts> {
  const table = `${outbox.schema}.${outbox.table}`;
  const { status, availableAt, createdAt } = outbox.columns;
  if (status === null) return { table, waiting: null };
  const from = `FROM ${quoteTable(outbox.schema, outbox.table)} WHERE ${quoteIdentifier(status)}`;
  const due = availableAt === null ? '' : ` AND ${quoteIdentifier(availableAt)} <= UTC_TIMESTAMP(6)`;
  const since = availableAt ?? createdAt;
  const oldest =
    since === null ? 'NULL' : `TIMESTAMPDIFF(MICROSECOND, MIN(${quoteIdentifier(since)}), UTC_TIMESTAMP(6)) DIV 1000`;
  const doing = `counting rows of ${table}`;
  const [pending] = await session.rows(
    doing,
    `SELECT COUNT(*) AS pending, ${oldest} AS oldest_ms ${from} = 'pending'${due}`,
  );
  const [all] = await session.rows(doing, `SELECT COUNT(*) AS pending ${from} = 'pending'`);
  const [failed] = await session.rows(doing, `SELECT COUNT(*) AS failed ${from} = 'failed'`);
  return {
    table,
    waiting: {
      pending: Number(pending['pending']),
      oldestPendingMs: pending['oldest_ms'] === null ? null : Number(pending['oldest_ms']),
      delayed: Number(all['pending']) - Number(pending['pending']),
      failed: Number(failed['failed']),
    },
  };
}

async function bytesBetween(session: Session, from: Position, to: Position): Promise<number | null> {
  if (from.file === to.file) return Math.max(0, to.offset - from.offset);
  if (comparePositions(from, to) > 0) return null;
  const logs = await session.rows('listing the binlogs', 'SHOW BINARY LOGS');
  let bytes: number | null = null;
  for (const log of logs) {
    const file = log['Log_name'] as string;
    if (file === from.file) bytes = Number(log['File_size']) - from.offset;
    else if (bytes !== null && fileNumber(file) < fileNumber(to.file)) bytes += Number(log['File_size']);
  }
  return bytes === null ? null : bytes + to.offset;
}
