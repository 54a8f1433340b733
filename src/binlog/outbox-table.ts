import { fault, RelayError } from '../model/fault.ts';
import { comparePositions, formatPosition, type Position } from '../model/position.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { isSelfDescribing, nameColumns } from './named-columns.ts';
import { layOut, planFor, type Layout, type RowPlan } from './row-plan.ts';
import { fits, type TableDefinition } from './table-definition.ts';
import { readTableMap, type TableMap } from './table-map.ts';
import { UndecodableError } from './undecodable.ts';

/** What was found by reading ahead, from where the stream begins: is the definition that of the log's rows? */
export interface LookedAhead {
  /** As far as was read, and the definition with it: a statement behind it makes the definition stale. */
  readonly upTo: Position;
  /** Behind the last statement that may have changed the columns: the definition holds from there on. Null: all along. */
  readonly changedAt: Position | null;
}

/** A configured outbox table, with what was asked about it before the stream began. */
export interface KnownOutbox {
  readonly index: number;
  readonly settings: OutboxSettings;
  /** Null when the server shows no such table. */
  readonly definition: TableDefinition | null;
  /** Null: not looked for. Only columns without names need it. */
  readonly lookedAhead: LookedAhead | null;
  /** A statement behind what was looked at may have changed the columns. */
  definitionIsStale: boolean;
}

/** A TABLE_MAP event: its header begins at `start`. */
export interface TableMapEvent {
  readonly known: KnownOutbox;
  readonly buffer: Buffer;
  readonly start: number;
  readonly bodyEnd: number;
  readonly at: Position;
  readonly seconds: number;
  readonly mariadb: boolean;
}

/** An outbox table as one TABLE_MAP describes it; everything is worked out when the first row needs it. */
export class OutboxTable {
  readonly #known: KnownOutbox;
  readonly #map: TableMap;
  readonly #at: Position;
  readonly #seconds: number;
  #layout: Layout | null = null;
  #full: RowPlan | null = null;
  readonly #partial = new Map<string, RowPlan>();

  /** Throws a RangeError when the event cannot be read. */
  constructor({ known, buffer, start, bodyEnd, at, seconds, mariadb }: TableMapEvent) {
    this.#known = known;
    this.#at = at;
    this.#map = readTableMap(buffer, start, bodyEnd, mariadb);
    this.#seconds = seconds;
  }

  get name(): string {
    return `${this.#map.schema}.${this.#map.table}`;
  }

  /**
   * The plan for images that hold the columns of the bitmap at `at`. Throws an UndecodableError when the table of then
   * cannot be read, a RelayError when that of now cannot, or is to be asked for; a RangeError when the event is about
   * another number of columns.
   */
  plan(buffer: Buffer, at: number, columns: number): RowPlan {
    if (columns !== this.#map.columns.length) throw new RangeError('a row event and its table differ in columns');
    const layout = (this.#layout ??= this.#layOut());
    if (holdsAll(buffer, at, columns)) return (this.#full ??= planFor(layout, () => true));
    const bitmap = Buffer.from(buffer.subarray(at, at + ((columns + 7) >> 3)));
    const key = bitmap.toString('latin1');
    let plan = this.#partial.get(key);
    if (plan === undefined) {
      plan = planFor(layout, (i) => ((bitmap[i >> 3] >> (i & 7)) & 1) === 1);
      this.#partial.set(key, plan);
    }
    return plan;
  }

  #layOut(): Layout {
    const { index, settings, definition } = this.#known;
    if (!isSelfDescribing(this.#map)) this.#checkDefinition();
    try {
      return layOut(index, settings, nameColumns(this.#map, definition));
    } catch (error) {
      // A table that is there was looked at before the stream began, and could be read.
      if (definition === null || !(error instanceof RelayError)) throw error;
      const detail = `${formatPosition(this.#at)}: ${error.fault.detail}, as the table was then`;
      throw new UndecodableError('BINLOG_UNSUPPORTED', detail);
    }
  }

  /**
   * Columns without names are those of the definition only if nothing has changed them in between. That two of one
   * type were swapped cannot be seen in the rows: what is not sure is not read.
   */
  #checkDefinition(): void {
    const { definition, lookedAhead, definitionIsStale } = this.#known;
    if (lookedAhead === null) {
      throw fault(
        'MYSQL_SCHEMA',
        'retry',
        `the log does not name the columns of ${this.name}: it is read ahead for statements that changed them`,
      );
    }
    // The next stream asks again, and begins behind the statement.
    if (definitionIsStale)
      throw fault('MYSQL_SCHEMA', 'retry', `${this.name} may have other columns now: they are asked for again`);
    const at = formatPosition(this.#at);
    const refused = (why: string) => new UndecodableError('BINLOG_UNSUPPORTED', `${at}: ${why}: ${NAMELESS}`);
    if (definition === null) throw refused(`${this.name} is in the log but gone, or not visible to this user`);
    const { changedAt } = lookedAhead;
    if (changedAt !== null && comparePositions(this.#at, changedAt) < 0) {
      const by = `by the statement that ends at ${formatPosition(changedAt)}`;
      throw refused(`the columns of ${this.name} may have changed since, ${by}`);
    }
    if (this.#seconds < definition.createdAtSeconds || !fits(definition, this.#map))
      throw refused(`the columns of ${this.name} have changed since`);
  }
}

const NAMELESS =
  'the log does not name its columns (SET GLOBAL binlog_row_metadata = FULL makes it do so from then on); ' +
  'docs/fidelity.md says how to go on';

function holdsAll(b: Buffer, at: number, columns: number): boolean {
  let left = columns;
  for (; left >= 8; left -= 8) if (b[at++] !== 0xff) return false;
  const mask = (1 << left) - 1;
  return (b[at] & mask) === mask;
}
