import type { Pool, RowDataPacket } from 'mysql2/promise';

/** What the record of one row must be, as MySQL itself shows the row. */
export interface ExpectedRow {
  /** The primary key as text. */
  readonly id: string;
  /** The idempotency key as header `id` has it. */
  readonly eventId: string;
  readonly topic: string;
  readonly key: Buffer;
  readonly value: Buffer | null;
  /** Null: the row does not say. */
  readonly timestampMs: number | null;
  /** In order, `id` first. */
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[];
}

/** Where the parts of a record stand in the table; defaults: the outbox as shipped. */
export interface RowSource {
  /** `schema.table` or a table of the pool's database. */
  readonly table: string;
  readonly id?: string;
  readonly aggregateId?: string;
  readonly payload?: string;
  readonly idempotencyKey?: string;
  readonly eventType?: string | null;
  readonly headers?: string | null;
  readonly createdAt?: string | null;
  /** A fixed topic, where it is no column. */
  readonly topic?: string;
  /** SQL: which rows should be out. Default: all. */
  readonly where?: string;
}

/** The rows of an outbox table by primary key, with the text that the server itself gives for each column. */
export async function expectedRows(pool: Pool, source: RowSource): Promise<ExpectedRow[]> {
  const id = source.id ?? 'id';
  const types = await columnTypes(pool, source.table);
  const column = (name: string | null | undefined, usual: string): string => {
    const chosen = name === undefined ? usual : name;
    if (chosen === null) return 'NULL';
    const type = types.get(chosen);
    if (type === undefined) throw new Error(`${source.table} has no column ${chosen}`);
    return shown(chosen, type);
  };
  const createdAt = source.createdAt === undefined ? 'created_at' : source.createdAt;
  const columns = [
    column(id, ''),
    column(source.idempotencyKey, 'idempotency_key'),
    source.topic === undefined ? column('topic', '') : pool.escape(source.topic),
    column(source.aggregateId, 'aggregate_id'),
    column(source.payload, 'payload'),
    createdAt === null ? 'NULL' : `FLOOR(UNIX_TIMESTAMP(\`${createdAt}\`) * 1000)`,
    column(source.eventType, 'event_type'),
    column(source.headers, 'headers'),
  ];
  const where = source.where === undefined ? '' : `WHERE ${source.where}`;
  const sql = `SELECT ${columns.join(', ')} FROM ${source.table} ${where} ORDER BY \`${id}\``;
  const [rows] = await pool.query<RowDataPacket[][]>({ sql, rowsAsArray: true });
  return (rows as unknown as (Buffer | string | null)[][]).map(expectedRow);
}

function expectedRow(row: (Buffer | string | null)[]): ExpectedRow {
  const [id, eventId, topic, key, value, timestampMs, eventType, headers] = row as (Buffer | null)[];
  const headerId = eventId!.length === 16 ? uuid(eventId!) : String(eventId);
  return {
    id: String(id),
    eventId: headerId,
    topic: String(topic),
    key: key!,
    value,
    timestampMs: timestampMs === null ? null : Number(timestampMs),
    headers: [
      ['id', Buffer.from(headerId)],
      ...(eventType === null ? [] : [['event-type', eventType] as const]),
      ...(headers === null ? [] : members(String(headers))),
    ],
  };
}

/** Bytes: binary columns as they are, everything else as UTF-8 of what SELECT shows. */
function shown(column: string, type: string): string {
  const name = `\`${column}\``;
  return /^(binary|varbinary|(tiny|medium|long)?blob)/.test(type)
    ? name
    : `CAST(CONVERT(${name} USING utf8mb4) AS BINARY)`;
}

async function columnTypes(pool: Pool, table: string): Promise<Map<string, string>> {
  const [columns] = await pool.query<RowDataPacket[]>(`SHOW COLUMNS FROM ${table}`);
  return new Map(columns.map(({ Field, Type }) => [String(Field), String(Type)]));
}

function uuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/**
 * The members of a JSON object in the server's text, in its order: a string is worth its text, JSON null is a null
 * header, anything else is worth its JSON text.
 */
function members(object: string): [string, Buffer | null][] {
  const found: [string, Buffer | null][] = [];
  const tokens = [...object.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g)];
  let depth = 0;
  let name = '';
  let start = -1;
  tokens.forEach(({ 0: token, index }, i) => {
    if (depth === 1 && (token === ',' || token === '}') && start >= 0) {
      found.push([name, headerValue(object.slice(start, index).trim())]);
      start = -1;
    }
    if (depth === 1 && token === ':' && start < 0) {
      name = JSON.parse(tokens[i - 1][0]) as string;
      start = index + 1;
    }
    if (token === '{' || token === '[') depth++;
    if (token === '}' || token === ']') depth--;
  });
  return found;
}

function headerValue(json: string): Buffer | null {
  if (json === 'null') return null;
  return Buffer.from(json.startsWith('"') ? (JSON.parse(json) as string) : json);
}
