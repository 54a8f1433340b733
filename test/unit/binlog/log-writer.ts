import { crc32 } from 'node:zlib';
import type { Position } from '../../../src/model/position.ts';

/** Writes events as a MySQL server does, for tests that need what a real one cannot be made to write. */
export class LogWriter {
  file: string;
  offset: number;
  readonly events: Buffer[] = [];
  seconds = 1_796_000_000;
  readonly #checksum: boolean;

  constructor(at: Position = { file: 'binlog.000001', offset: 4 }, checksum = true) {
    this.file = at.file;
    this.offset = at.offset;
    this.#checksum = checksum;
  }

  get position(): Position {
    return { file: this.file, offset: this.offset };
  }

  /** An event of the file; gives its bytes. */
  add(type: number, body: Buffer): Buffer {
    this.offset += 19 + body.length + (this.#checksum ? 4 : 0);
    return this.#push(type, body, 0, this.offset);
  }

  /** An event that the server makes up; `end` is its header's position. */
  artificial(type: number, body: Buffer, flags = 0x20, end = 0): Buffer {
    return this.#push(type, body, flags, end);
  }

  formatDescription(): Buffer {
    const body = Buffer.concat([Buffer.alloc(2 + 50 + 4 + 1 + 40), Buffer.of(this.#checksum ? 1 : 0)]);
    return this.add(15, this.#checksum ? body : Buffer.concat([body, Buffer.alloc(4)]));
  }

  gtid(gno: number, sid = '00112233445566778899aabbccddeeff', commitMicros = this.seconds * 1_000_000 + 123): Buffer {
    return this.add(33, gtidBody(gno, sid, commitMicros));
  }

  anonymous(): Buffer {
    return this.add(34, gtidBody(0, '00'.repeat(16), 0));
  }

  query(text: string, schema = 'app'): Buffer {
    const head = Buffer.alloc(13);
    head[8] = schema.length;
    head.writeUInt16LE(3, 11);
    return this.add(2, Buffer.concat([head, Buffer.of(1, 2, 3), Buffer.from(`${schema}\0${text}`)]));
  }

  begin(): Buffer {
    return this.query('BEGIN');
  }

  xid(): Buffer {
    return this.add(16, Buffer.alloc(8, 7));
  }

  tableMap(id: number, table: TestTable, optional = fullMetadata(table)): Buffer {
    return this.add(19, tableMapBody(id, table, optional));
  }

  insert(id: number, table: TestTable, rows: readonly TestRow[], present?: readonly number[]): Buffer {
    const images = rows.map((row) => rowImage(table, row, present));
    return this.add(30, Buffer.concat([rowsHead(id, table, [present]), ...images]));
  }

  delete(id: number, table: TestTable, rows: readonly TestRow[]): Buffer {
    return this.add(32, Buffer.concat([rowsHead(id, table, [undefined]), ...rows.map((row) => rowImage(table, row))]));
  }

  /** `present`: the columns of the row as it was, and of the row as it became. */
  update(
    id: number,
    table: TestTable,
    pairs: readonly (readonly [TestRow, TestRow])[],
    [was, became]: readonly [Columns | undefined, Columns | undefined] = [undefined, undefined],
  ): Buffer {
    const images = pairs.flatMap(([before, after]) => [rowImage(table, before, was), rowImage(table, after, became)]);
    return this.add(31, Buffer.concat([rowsHead(id, table, [was, became]), ...images]));
  }

  rotate(file: string): Buffer {
    const body = Buffer.concat([u64(4), Buffer.from(file)]);
    const event = this.add(4, body);
    this.file = file;
    this.offset = 4;
    return event;
  }

  #push(type: number, body: Buffer, flags: number, end: number): Buffer {
    const size = 19 + body.length + (this.#checksum ? 4 : 0);
    const event = Buffer.alloc(size);
    event.writeUInt32LE(this.seconds, 0);
    event[4] = type;
    event.writeUInt32LE(1, 5);
    event.writeUInt32LE(size, 9);
    event.writeUInt32LE(end % 2 ** 32, 13);
    event.writeUInt16LE(flags, 17);
    body.copy(event, 19);
    if (this.#checksum) event.writeUInt32LE(crc32(event.subarray(0, size - 4)), size - 4);
    this.events.push(event);
    return event;
  }
}

type Columns = readonly number[];

export interface TestColumn {
  readonly name: string;
  readonly type: number;
  readonly metadata: readonly number[];
  readonly unsigned?: boolean;
  readonly collation?: number;
  readonly labels?: readonly string[];
}

export interface TestTable {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly TestColumn[];
}

/** A value per column, as it lies in the row with its length; null is NULL. */
export type TestRow = readonly (Buffer | null)[];

export const UTF8MB4 = 255;
export const BINARY = 63;

export function varchar(text: string | Buffer, lengthBytes: 1 | 2 = 2): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntLE(bytes.length, 0, lengthBytes);
  return Buffer.concat([length, bytes]);
}

export function blob(bytes: string | Buffer): Buffer {
  const value = Buffer.from(bytes);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  return Buffer.concat([length, value]);
}

export function u64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function gtidBody(gno: number, sid: string, commitMicros: number): Buffer {
  const commit = Buffer.alloc(8);
  commit.writeBigUInt64LE(BigInt(commitMicros));
  return Buffer.concat([Buffer.of(0), Buffer.from(sid, 'hex'), u64(gno), Buffer.alloc(17), commit.subarray(0, 7)]);
}

/** The body of XA_PREPARE, in two phases or one. */
export function xaPrepare(name: string, onePhase = false): Buffer {
  const head = Buffer.alloc(13);
  head[0] = onePhase ? 1 : 0;
  head.writeUInt32LE(1, 1);
  head.writeUInt32LE(name.length, 5);
  return Buffer.concat([head, Buffer.from(name)]);
}

function tableId(id: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUIntLE(id, 0, 6);
  bytes[6] = 1;
  return bytes;
}

function tableMapBody(id: number, { schema, name, columns }: TestTable, optional: Buffer): Buffer {
  const metadata = Buffer.from(columns.flatMap((column) => column.metadata));
  return Buffer.concat([
    tableId(id),
    Buffer.of(schema.length),
    Buffer.from(`${schema}\0`),
    Buffer.of(name.length),
    Buffer.from(`${name}\0`),
    Buffer.of(columns.length, ...columns.map(({ type }) => type)),
    Buffer.of(metadata.length),
    metadata,
    Buffer.alloc((columns.length + 7) >> 3, 0xff),
    optional,
  ]);
}

const NUMERIC = [1, 2, 3, 4, 5, 8, 9, 246];
const CHARACTER = [15, 252, 253, 254];
const isEnum = ({ type, metadata }: TestColumn) => type === 254 && metadata[0] === 247;

/** As with `binlog_row_metadata=FULL`. */
export function fullMetadata(table: TestTable): Buffer {
  const names = field(4, Buffer.concat(table.columns.map(({ name }) => text(name))));
  const enums = table.columns.filter(isEnum);
  const labels = enums.map(({ labels = [] }) => Buffer.concat([Buffer.of(labels.length), ...labels.map(text)]));
  return Buffer.concat([minimalMetadata(table), names, ...(enums.length > 0 ? [field(6, Buffer.concat(labels))] : [])]);
}

/** As with `binlog_row_metadata=MINIMAL`: no names, no labels. */
export function minimalMetadata({ columns }: TestTable): Buffer {
  const numeric = columns.filter(({ type }) => NUMERIC.includes(type));
  const signedness = Buffer.alloc((numeric.length + 7) >> 3);
  numeric.forEach(({ unsigned }, n) => (signedness[n >> 3] |= unsigned === true ? 0x80 >> (n & 7) : 0));
  const characters = columns.filter((column) => CHARACTER.includes(column.type) && !isEnum(column));
  const collations = characters.map(({ collation = UTF8MB4 }) => packed(collation));
  const enums = columns.filter(isEnum).map(({ collation = UTF8MB4 }) => packed(collation));
  return Buffer.concat([
    field(1, signedness),
    field(3, Buffer.concat(collations)),
    ...(enums.length > 0 ? [field(11, Buffer.concat(enums))] : []),
  ]);
}

function packed(value: number): Buffer {
  return value < 251 ? Buffer.of(value) : Buffer.of(252, value & 255, value >> 8);
}

function text(value: string): Buffer {
  return Buffer.concat([packed(Buffer.byteLength(value)), Buffer.from(value)]);
}

function field(type: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.of(type), packed(value.length), value]);
}

function rowsHead(id: number, { columns }: TestTable, images: readonly (readonly number[] | undefined)[]): Buffer {
  const bitmaps = images.map((present) => {
    const bitmap = Buffer.alloc((columns.length + 7) >> 3, present === undefined ? 0xff : 0);
    present?.forEach((i) => (bitmap[i >> 3] |= 1 << (i & 7)));
    return bitmap;
  });
  return Buffer.concat([tableId(id), Buffer.of(2, 0, columns.length), ...bitmaps]);
}

function rowImage({ columns }: TestTable, row: TestRow, present: readonly number[] = [...columns.keys()]): Buffer {
  const nulls = Buffer.alloc((present.length + 7) >> 3);
  present.forEach((i, n) => (nulls[n >> 3] |= row[i] === null ? 1 << (n & 7) : 0));
  return Buffer.concat([nulls, ...present.map((i) => row[i] ?? Buffer.alloc(0))]);
}
