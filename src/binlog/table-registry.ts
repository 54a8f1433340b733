import { comparePositions, type Position } from '../model/position.ts';
import { HEADER_BYTES } from './event-header.ts';
import { u48 } from './little-endian.ts';
import type { LogPosition } from './log-position.ts';
import { OutboxTable, type KnownOutbox } from './outbox-table.ts';
import { meansFor, type TextMeans } from './statement-text.ts';
import { TABLE_NAMES_AT } from './table-map.ts';

/** What a table is to the relay. */
export const TableKind = {
  Foreign: 0,
  Outbox: 1,
  /** The relay's own offsets: the first statement of each of its transactions. */
  Offsets: 2,
  /** Another `cdc_relay_%` table, of whatever relay. */
  Relay: 3,
} as const;
export type TableKind = (typeof TableKind)[keyof typeof TableKind];

interface Entry {
  readonly kind: TableKind;
  /** What must be the same for the entry to hold: all that follows table id and flags for an outbox, else the names. */
  readonly bytes: Buffer;
  readonly outbox: OutboxTable | null;
}

export interface RegistryOptions {
  readonly outboxes: readonly KnownOutbox[];
  /** Schema of the relay's own tables. */
  readonly relaySchema: string;
  /** The server compares names without regard to case (`lower_case_table_names` is not 0). */
  readonly ignoreCase: boolean;
  readonly mariadb: boolean;
  /** Of the event that is being handed over. */
  readonly position: LogPosition;
  /** Given: the log is only looked at for this, statements that may have changed the columns of an outbox table. */
  readonly onDefinition: OnDefinition | null;
}

/** `outbox`: its index; `end`: behind the statement. */
export type OnDefinition = (outbox: number, end: Position) => void;

/** Tables by the number that the server gave them: the newest TABLE_MAP of a number counts. */
export class TableRegistry {
  readonly #options: RegistryOptions;
  readonly #byId = new Map<number, Entry>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Takes a TABLE_MAP event. Throws a RangeError when it cannot be read. */
  see(buffer: Buffer, start: number, bodyEnd: number, seconds: number): TableKind {
    const id = u48(buffer, start + HEADER_BYTES);
    const names = start + TABLE_NAMES_AT;
    const known = this.#byId.get(id);
    if (known !== undefined && holds(known, buffer, names, bodyEnd)) return known.kind;
    const entry = this.#read(buffer, start, bodyEnd, seconds);
    this.#byId.set(id, entry);
    return entry.kind;
  }

  /** Undefined for a number that no TABLE_MAP gave; null for a table that is no outbox. */
  outbox(id: number): OutboxTable | null | undefined {
    return this.#byId.get(id)?.outbox;
  }

  /** Numbers begin again with each start of the server. */
  forget(): void {
    this.#byId.clear();
  }

  /** What a statement may have done to any of the outbox tables: the gravest. */
  meaning(text: string, schema: string): TextMeans {
    let gravest: TextMeans = 'nothing';
    for (const outbox of this.#options.outboxes) {
      const { schema: own, table } = outbox.settings;
      const means = meansFor(text, schema, { schema: own, name: table });
      if (means === 'definition') this.#changed(outbox);
      if (GRAVITY[means] > GRAVITY[gravest]) gravest = means;
    }
    return this.#options.onDefinition === null ? gravest : 'nothing';
  }

  /** A statement that cannot be read may have changed the columns of any. */
  mayHaveChanged(): void {
    for (const outbox of this.#options.outboxes) this.#changed(outbox);
  }

  #changed(outbox: KnownOutbox): void {
    const { position, onDefinition } = this.#options;
    const { file, offset } = position;
    if (onDefinition !== null) {
      onDefinition(outbox.index, { file, offset });
      return;
    }
    // What was worked out for a number holds no more, should the number live on.
    this.forget();
    if (outbox.lookedAhead !== null && comparePositions({ file, offset }, outbox.lookedAhead.upTo) > 0)
      outbox.definitionIsStale = true;
  }

  #read(buffer: Buffer, start: number, bodyEnd: number, seconds: number): Entry {
    const at = start + TABLE_NAMES_AT;
    const table = at + buffer[at] + 2;
    const end = table + buffer[table] + 2;
    if (!(end <= bodyEnd)) throw new RangeError('a field reaches beyond its event');
    const schemaName = buffer.toString('utf8', at + 1, table - 1);
    const tableName = buffer.toString('utf8', table + 1, end - 1);
    const known = this.#options.outboxes.find(
      ({ settings }) => this.#same(settings.schema, schemaName) && this.#same(settings.table, tableName),
    );
    if (known === undefined || this.#options.onDefinition !== null) {
      return { kind: this.#kindOf(schemaName, tableName), bytes: copy(buffer, at, end), outbox: null };
    }
    const { position, mariadb } = this.#options;
    const { file, offset } = position;
    const outbox = new OutboxTable({ known, buffer, start, bodyEnd, at: { file, offset }, seconds, mariadb });
    return { kind: TableKind.Outbox, bytes: copy(buffer, at, bodyEnd), outbox };
  }

  #kindOf(schema: string, table: string): TableKind {
    if (!table.toLowerCase().startsWith('cdc_relay_')) return TableKind.Foreign;
    const own = this.#same(schema, this.#options.relaySchema) && this.#same(table, 'cdc_relay_offsets');
    return own ? TableKind.Offsets : TableKind.Relay;
  }

  #same(a: string, b: string): boolean {
    return this.#options.ignoreCase ? a.toLowerCase() === b.toLowerCase() : a === b;
  }
}

const GRAVITY: Readonly<Record<TextMeans, number>> = { nothing: 0, definition: 1, changes: 2, inserts: 3 };

function copy(buffer: Buffer, start: number, end: number): Buffer {
  return Buffer.from(buffer.subarray(start, end));
}

function holds({ kind, bytes }: Entry, buffer: Buffer, at: number, bodyEnd: number): boolean {
  const { length } = bytes;
  if (kind === TableKind.Outbox ? length !== bodyEnd - at : length > bodyEnd - at) return false;
  for (let i = 0; i < length; i++) if (bytes[i] !== buffer[at + i]) return false;
  return true;
}
