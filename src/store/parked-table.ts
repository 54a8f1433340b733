import { fault } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { ParkedEntry, Scope } from '../model/parked.ts';
import type { RowId } from '../model/row-ids.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { ParkedChanges } from '../model/store.ts';
import type { Row, Session } from './session.ts';

/** What the columns hold. */
const MAX_TOPIC_CHARACTERS = 249;
const MAX_KEY_BYTES = 1_024;
const MAX_REASON_CHARACTERS = 255;
/** Scopes of one statement. */
const STATEMENT_SCOPES = 500;

const DUE_IN_MS =
  'GREATEST(0, CEIL(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), not_before) / 1000)) AS due_in_ms' as const;

/** The session's time zone is UTC, as the column is. */
const SINCE_MS = 'ROUND(UNIX_TIMESTAMP(since) * 1000) AS since_ms';

/** The parked scopes of this relay as the table has them. */
export class ParkedTable {
  readonly #table: string;
  readonly #relay: string;
  readonly #outboxes: readonly string[];

  constructor(settings: Settings) {
    this.#table = quoteTable(settings.mysql.database, 'cdc_relay_parked');
    this.#relay = settings.relay.name;
    this.#outboxes = settings.outboxes.map(nameOf);
  }

  async read(session: Session): Promise<ParkedEntry[]> {
    const rows = await session.rows(
      'reading the parked scopes',
      `SELECT kind, topic, \`partition\`, key_bytes, partitions, ${DUE_IN_MS}, attempts, reason, outbox, row_id,
         ${SINCE_MS}
       FROM ${this.#table} WHERE relay = ? ORDER BY since, kind, topic, \`partition\`, key_bytes`,
      [this.#relay],
    );
    return rows.map((row) => this.#entryOf(row));
  }

  /** In a transaction of the caller's. `since` of a scope that is there already stays. */
  async write(session: Session, { put, remove }: ParkedChanges): Promise<void> {
    for (const some of portions(remove)) await this.#remove(session, some);
    for (const some of portions(put)) await this.#put(session, some);
  }

  async #put(session: Session, entries: readonly ParkedEntry[]): Promise<void> {
    const one = '(?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, ?, ?, ?, ?)';
    await session.change(
      'writing the parked scopes',
      `INSERT INTO ${this.#table} (relay, kind, topic, \`partition\`, key_bytes, partitions, not_before, attempts,
         reason, outbox, row_id)
       VALUES ${entries.map(() => one).join(', ')}
       ON DUPLICATE KEY UPDATE partitions = VALUES(partitions), not_before = VALUES(not_before),
         attempts = VALUES(attempts), reason = VALUES(reason), outbox = VALUES(outbox), row_id = VALUES(row_id)`,
      entries.flatMap(({ scope, partitions, dueInMs, attempts, reason, row }) => [
        this.#relay,
        ...columnsOf(scope),
        partitions,
        dueInMs === null ? null : Math.round(dueInMs * 1000),
        attempts,
        Array.from(reason).slice(0, MAX_REASON_CHARACTERS).join(''),
        row === null ? null : this.#outboxes[row.outbox],
        row === null ? null : idText(row.id),
      ]),
    );
  }

  /** By the primary key: other relays' scopes, which may be locked, must not be waited for. */
  async #remove(session: Session, scopes: readonly Scope[]): Promise<void> {
    const one = '(?, ?, ?, ?, ?)';
    await session.change(
      'removing parked scopes',
      `DELETE ${this.#table} FROM ${this.#table} FORCE INDEX (PRIMARY)
       WHERE (relay, kind, topic, \`partition\`, key_bytes) IN (${scopes.map(() => one).join(', ')})`,
      scopes.flatMap((scope) => [this.#relay, ...columnsOf(scope)]),
    );
  }

  #entryOf(row: Row): ParkedEntry {
    // An outbox that is no longer configured: its row is nobody's.
    const outbox = this.#outboxes.indexOf(String(row['outbox']));
    const id = row['row_id'];
    return {
      scope: scopeOf(row),
      partitions: Number(row['partitions']),
      dueInMs: row['due_in_ms'] === null ? null : Number(row['due_in_ms']),
      attempts: Number(row['attempts']),
      sinceMs: Number(row['since_ms']),
      reason: String(row['reason']),
      row: outbox < 0 || typeof id !== 'string' ? null : { outbox, id: idFrom(id) },
    };
  }
}

/** `schema.table`. */
export function nameOf({ schema, table }: OutboxSettings): string {
  return `${schema}.${table}`;
}

type Columns = readonly [kind: string, topic: string, partition: number, key: Buffer];

/** Throws a RangeError where the columns are too short: such a scope has to be made wider before. */
function columnsOf(scope: Scope): Columns {
  const topic = scope.kind === 'everything' ? '' : scope.topic;
  const partition = scope.kind === 'pair' || scope.kind === 'topic-partition' ? scope.partition : -1;
  const key = scope.kind === 'pair' ? scope.key : NOTHING;
  if (Array.from(topic).length > MAX_TOPIC_CHARACTERS) throw new RangeError('a topic too long to be parked');
  if (key.length > MAX_KEY_BYTES) throw new RangeError(`a key of ${key.length} bytes is too long to be a pair's`);
  return [scope.kind, topic, partition, key];
}

const NOTHING = Buffer.alloc(0);

function scopeOf(row: Row): Scope {
  const kind = String(row['kind']);
  const topic = String(row['topic']);
  const partition = Number(row['partition']);
  switch (kind) {
    case 'everything':
      return { kind };
    case 'topic':
      return { kind, topic };
    case 'topic-partition':
      return { kind, topic, partition };
    case 'pair':
      return { kind, topic, partition, key: row['key_bytes'] as Buffer };
    default:
      throw fault('MYSQL_SCHEMA', 'halt', `cdc_relay_parked has a scope of kind ${kind}: of a newer version`);
  }
}

function idText(id: RowId): string {
  return typeof id === 'bigint' ? String(id) : `0x${id}`;
}

function idFrom(text: string): RowId {
  return text.startsWith('0x') ? text.slice(2) : BigInt(text);
}

function* portions<T>(all: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < all.length; at += STATEMENT_SCOPES) yield all.slice(at, at + STATEMENT_SCOPES);
}
