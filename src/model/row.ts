/**
 * How the bytes of a field are to be read. `Text` is UTF-8 (or the bytes of a binary column) and goes out as it is;
 * `Json` is MySQL's binary JSON and goes out as the server's own text; `Uuid` is a BINARY(16) that goes out as a UUID's
 * text (fewer than 16 bytes: the binary log cuts trailing zeros, and they count as there).
 */
export const Form = { Null: 0, Text: 1, Json: 2, Uuid: 3 } as const;
export type Form = (typeof Form)[keyof typeof Form];

/** A slice of somebody else's buffer. Mutable and reused: nothing on the hot path allocates one per row. */
export interface Field {
  form: Form;
  buffer: Buffer;
  start: number;
  end: number;
}

/**
 * One outbox row, wherever it was read (binlog, SELECT, a test). A flyweight: its cursor fills it again on each step,
 * so it is valid only until then.
 */
export interface OutboxRow {
  /** Index into the configured outbox tables. */
  outbox: number;
  /** The primary key when it is an integer: unsigned 64 bits in two halves, so that no bigint is made per row. */
  idLow: number;
  idHigh: number;
  /** The primary key's bytes when it is not an integer; `Null` when it is. */
  readonly idBytes: Field;
  readonly topic: Field;
  /** The aggregate id: Kafka's record key, UTF-8 of what SELECT shows. */
  readonly key: Field;
  readonly eventType: Field;
  /** SQL NULL is Kafka's null (a tombstone); JSON `null` is the text `null`. */
  readonly value: Field;
  /** The row's own headers: a JSON object in binary JSON or as text, or NULL. */
  readonly headers: Field;
  /** BINARY(16) (`Form.Uuid`) or text as it stands; never NULL in a record. */
  readonly idempotencyKey: Field;
  /** The job that sends the row again, as text: a header of its own. `Null` but for such rows. */
  readonly replay: Field;
  /** `created_at` in milliseconds since the epoch; -1 when the column is absent or NULL. */
  createdAtMs: number;
  /** False: the log left columns out. Only outbox and id hold then; the row is to be read (`Store.readRows`). */
  isComplete: boolean;
}

/** Walks rows without making objects: `row` is filled by each `next()` that returns true. */
export interface RowCursor {
  readonly row: OutboxRow;
  next(): boolean;
}

/** A field that holds nothing yet. */
export function emptyField(): Field {
  return { form: Form.Null, buffer: NOTHING, start: 0, end: 0 };
}

const NOTHING = Buffer.alloc(0);

export function emptyRow(): OutboxRow {
  return {
    outbox: 0,
    idLow: 0,
    idHigh: 0,
    idBytes: emptyField(),
    topic: emptyField(),
    key: emptyField(),
    eventType: emptyField(),
    value: emptyField(),
    headers: emptyField(),
    idempotencyKey: emptyField(),
    replay: emptyField(),
    createdAtMs: -1,
    isComplete: true,
  };
}
