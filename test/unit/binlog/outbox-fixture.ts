import type { LargeTransaction } from '../../../src/binlog/large-transaction.ts';
import { LogReader } from '../../../src/binlog/log-reader.ts';
import type { LookedAhead } from '../../../src/binlog/outbox-table.ts';
import type { PreparedXa } from '../../../src/binlog/prepared-xa.ts';
import type { Reunion } from '../../../src/binlog/reunion.ts';
import { newCounters, type SourceCounters } from '../../../src/binlog/source-counters.ts';
import type { TableDefinition } from '../../../src/binlog/table-definition.ts';
import type { Position } from '../../../src/model/position.ts';
import { Form, type Field } from '../../../src/model/row.ts';
import type { OutboxColumns, OutboxSettings, TopicRule } from '../../../src/model/settings.ts';
import type { Transaction, TransactionGroup } from '../../../src/model/source.ts';
import { BINARY, blob, u64, varchar, type TestRow, type TestTable } from './log-writer.ts';

/** A small outbox table: id, topic, aggregate_id, payload, idempotency_key, status. */
export const OUTBOX: TestTable = {
  schema: 'app',
  name: 'outbox',
  columns: [
    { name: 'id', type: 8, metadata: [], unsigned: true },
    { name: 'topic', type: 15, metadata: [0xe4, 0x03] },
    { name: 'aggregate_id', type: 15, metadata: [0x00, 0x02] },
    { name: 'payload', type: 252, metadata: [4], collation: BINARY },
    { name: 'idempotency_key', type: 254, metadata: [254, 16], collation: BINARY },
    { name: 'status', type: 254, metadata: [247, 1], labels: ['pending', 'processing', 'published', 'failed'] },
  ],
};

/** What information_schema says of it. */
export const DEFINITION: TableDefinition = {
  createdAtSeconds: 1_700_000_000,
  columns: [
    { name: 'id', dataType: 'bigint', columnType: 'bigint unsigned', characterSet: null, octetLength: null },
    { name: 'topic', dataType: 'varchar', columnType: 'varchar(249)', characterSet: 'utf8mb4', octetLength: 996 },
    {
      name: 'aggregate_id',
      dataType: 'varchar',
      columnType: 'varchar(128)',
      characterSet: 'utf8mb4',
      octetLength: 512,
    },
    { name: 'payload', dataType: 'longblob', columnType: 'longblob', characterSet: null, octetLength: 4294967295 },
    { name: 'idempotency_key', dataType: 'binary', columnType: 'binary(16)', characterSet: null, octetLength: 16 },
    {
      name: 'status',
      dataType: 'enum',
      columnType: "enum('a,b','it''s','pending')",
      characterSet: 'utf8mb4',
      octetLength: 28,
    },
  ],
};

export const ORDERS: TestTable = {
  schema: 'app',
  name: 'orders',
  columns: [
    { name: 'id', type: 8, metadata: [], unsigned: true },
    { name: 'state', type: 15, metadata: [0x00, 0x02] },
  ],
};

export const OFFSETS: TestTable = {
  schema: 'cdc',
  name: 'cdc_relay_offsets',
  columns: [{ name: 'name', type: 15, metadata: [0x00, 0x01] }],
};

export const COLUMNS: OutboxColumns = {
  id: 'id',
  aggregateId: 'aggregate_id',
  eventType: null,
  payload: 'payload',
  headers: null,
  idempotencyKey: 'idempotency_key',
  status: 'status',
  availableAt: null,
  claimedAt: null,
  claimedBy: null,
  attempts: null,
  lastError: null,
  createdAt: null,
  publishedAt: null,
};

export const SETTINGS: OutboxSettings = {
  schema: 'app',
  table: 'outbox',
  columns: COLUMNS,
  topic: { kind: 'column', column: 'topic' },
  retire: 'mark',
  validateJson: false,
  retention: null,
  limits: null,
};

export interface OutboxValues {
  readonly topic?: string;
  readonly key?: string;
  readonly value?: string;
  /** 1 is pending. */
  readonly status?: number;
}

export function outboxRow(id: number | bigint, values: OutboxValues = {}): TestRow {
  const { topic = 'orders', key = `agg-${id}`, value = `value ${id}`, status = 1 } = values;
  const idempotencyKey = Buffer.alloc(16, 0xab);
  return [u64(id), varchar(topic), varchar(key), blob(value), varchar(idempotencyKey, 1), Buffer.of(status)];
}

const START: Position = { file: 'binlog.000001', offset: 4 };

export interface ReaderParts {
  readonly from?: Position | LargeTransaction;
  readonly topic?: TopicRule;
  readonly columns?: Partial<OutboxColumns>;
  readonly definition?: TableDefinition | null;
  readonly lookedAhead?: LookedAhead | null;
  readonly ignoreCase?: boolean;
  readonly maxTransactionBytes?: number;
  readonly counters?: SourceCounters;
  readonly prepared?: PreparedXa;
  readonly tolerant?: boolean;
  readonly reunion?: Reunion;
}

export function readerOf(parts: ReaderParts = {}): LogReader {
  const columns = { ...COLUMNS, ...parts.columns };
  const settings = { ...SETTINGS, columns, topic: parts.topic ?? SETTINGS.topic };
  return new LogReader({
    from: parts.from ?? START,
    outboxes: [
      {
        index: 0,
        settings,
        definition: parts.definition ?? null,
        lookedAhead: parts.lookedAhead === undefined ? { upTo: START, changedAt: null } : parts.lookedAhead,
        definitionIsStale: false,
      },
    ],
    relaySchema: 'cdc',
    ignoreCase: parts.ignoreCase ?? false,
    mariadb: false,
    maxTransactionBytes: parts.maxTransactionBytes ?? 1024 * 1024,
    counters: parts.counters ?? newCounters(),
    ...(parts.prepared === undefined ? {} : { prepared: parts.prepared }),
    tolerant: parts.tolerant ?? false,
    reunion: parts.reunion ?? null,
  });
}

/** Hands over all events as one chunk. */
export function readChunk(reader: LogReader, events: readonly Buffer[]): TransactionGroup | null {
  for (const event of events) reader.event(event, 0, event.length);
  return reader.seal();
}

export interface PlainRow {
  readonly id: bigint;
  readonly topic: string | null;
  readonly key: string | null;
  readonly value: string | null;
}

export function rowsOf(transaction: Transaction): PlainRow[] {
  const cursor = transaction.rows();
  const { row } = cursor;
  const rows: PlainRow[] = [];
  while (cursor.next()) {
    const id = (BigInt(row.idHigh) << 32n) | BigInt(row.idLow);
    rows.push({ id, topic: textOf(row.topic), key: textOf(row.key), value: textOf(row.value) });
  }
  return rows;
}

export function idsOf(transaction: Transaction): number[] {
  return rowsOf(transaction).map(({ id }) => Number(id));
}

export function textOf({ form, buffer, start, end }: Field): string | null {
  return form === Form.Null ? null : buffer.toString('utf8', start, end);
}

export function hexOf({ form, buffer, start, end }: Field): string | null {
  return form === Form.Null ? null : buffer.toString('hex', start, end);
}
