import { fault } from '../model/fault.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { NamedColumn } from './named-columns.ts';
import { takeDocument, takeId, takeKey, takeText, takeTime, takeStatus, TakeKind, Target, type Take } from './takes.ts';
import { TopicTemplate } from '../encoding/topic-template.ts';

/**
 * How to read a row image: for each column that the image holds, in order, how far its value reaches and what is
 * taken from it. Flat arrays: this is walked for every row.
 */
export interface RowPlan {
  /** Index into the configured outbox tables. */
  readonly outbox: number;
  /** Columns that the image holds; a bit for each leads it (set: NULL). */
  readonly columns: number;
  readonly nullBytes: number;
  /** Bytes of length before a value; 0: the value has `width` bytes. */
  readonly prefix: Uint8Array;
  readonly width: Uint32Array;
  /** The takes of column i are `firstTake[i]` to `firstTake[i + 1]`, exclusive. */
  readonly firstTake: Uint16Array;
  readonly takes: readonly Take[];
  /** False: every row is the tail's, as far as the image says. */
  readonly hasStatus: boolean;
  readonly fixedTopic: Buffer | null;
  readonly template: TopicTemplate | null;
  readonly holdsId: boolean;
  /** A column that is needed and that the image does not hold: the row is not complete. */
  readonly missing: string | null;
}

/** An outbox table as one TABLE_MAP describes it. */
export interface Layout {
  readonly outbox: number;
  /** `schema.table`, for messages. */
  readonly table: string;
  readonly columns: readonly NamedColumn[];
  readonly idColumn: number;
  /** By column: what is taken from it. */
  readonly takes: readonly (readonly Take[])[];
  readonly fixedTopic: Buffer | null;
  readonly template: TopicTemplate | null;
}

/** Throws a RelayError (halt) for a column that is not there or that cannot be read in its part. */
export function layOut(outbox: number, settings: OutboxSettings, columns: readonly NamedColumn[]): Layout {
  const table = `${settings.schema}.${settings.table}`;
  const takes = columns.map((): Take[] => []);
  const find = (name: string) => {
    const at = columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase());
    if (at < 0) throw fault('MYSQL_SCHEMA', 'halt', `${table} has no column ${name}`);
    return at;
  };
  const add = (name: string | null, take: (column: NamedColumn, table: string) => Take) => {
    if (name !== null) takes[find(name)].push(take(columns[find(name)], table));
  };
  const text = (target: number) => (column: NamedColumn) => takeText(column, table, target);
  const document = (target: number) => (column: NamedColumn) => takeDocument(column, table, target);
  const names = settings.columns;
  const template = settings.topic.kind === 'template' ? new TopicTemplate(settings.topic.template) : null;
  add(names.id, takeId);
  add(names.aggregateId, text(Target.Key));
  add(names.eventType, text(Target.EventType));
  add(names.payload, document(Target.Value));
  add(names.headers, document(Target.Headers));
  add(names.idempotencyKey, (column) => takeKey(column, table, Target.IdempotencyKey));
  add(names.status, takeStatus);
  add(names.availableAt, (column) => takeTime(column, table, TakeKind.AvailableAt));
  add(names.createdAt, (column) => takeTime(column, table, TakeKind.CreatedAt));
  if (settings.topic.kind === 'column') add(settings.topic.column, text(Target.Topic));
  template?.columns.forEach((name, n) => add(name, text(Target.FirstPart + n)));
  const unskippable = columns.find(({ extent }) => extent === null);
  if (unskippable !== undefined) {
    throw fault('BINLOG_UNSUPPORTED', 'halt', `${table}: the type of column ${unskippable.name} is not known`);
  }
  return {
    outbox,
    table,
    columns,
    idColumn: find(names.id),
    takes,
    fixedTopic: settings.topic.kind === 'fixed' ? Buffer.from(settings.topic.topic) : null,
    template,
  };
}

/** The plan for images that hold the columns for which `holds` says so. */
export function planFor(layout: Layout, holds: (column: number) => boolean): RowPlan {
  const held = [...layout.columns.keys()].filter(holds);
  const missing = layout.columns.findIndex((_, i) => layout.takes[i].length > 0 && !holds(i));
  const takes = held.flatMap((i) => layout.takes[i]);
  const firstTake = new Uint16Array(held.length + 1);
  held.forEach((i, n) => (firstTake[n + 1] = firstTake[n] + layout.takes[i].length));
  return {
    outbox: layout.outbox,
    columns: held.length,
    nullBytes: (held.length + 7) >> 3,
    prefix: Uint8Array.from(held, (i) => layout.columns[i].extent?.prefix ?? 0),
    width: Uint32Array.from(held, (i) => layout.columns[i].extent?.width ?? 0),
    firstTake,
    takes,
    hasStatus: takes.some(({ kind }) => kind === TakeKind.StatusLabel || kind === TakeKind.StatusText),
    fixedTopic: layout.fixedTopic,
    template: layout.template,
    holdsId: holds(layout.idColumn),
    missing: missing < 0 ? null : layout.columns[missing].name,
  };
}
