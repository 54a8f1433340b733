/**
 * A second, plain implementation of MySQL's binary JSON, in the other direction: from values to bytes, and to the text
 * that the server would print. What the properties compare the encoder with.
 */
export type Json = null | boolean | string | Json[] | JsonMap | Int | Double | Opaque;
export type JsonMap = Map<string, Json>;
/** An integer as the server types it: signed where it fits, in the narrowest width. */
export class Int {
  readonly value: bigint;
  constructor(value: bigint | number) {
    this.value = BigInt(value);
  }
}
export class Double {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}
export class Opaque {
  readonly type: number;
  readonly data: Buffer;
  /** The server's text, quotes included. */
  readonly text: string;
  constructor(type: number, data: Buffer, text: string) {
    this.type = type;
    this.data = data;
    this.text = text;
  }
}

/** A document as a JSON column stores it. `large` puts every container into the large format. */
export function encodeJson(json: Json, large = false): Buffer {
  const { type, bytes } = encode(json, large);
  return Buffer.concat([Buffer.of(type), bytes]);
}

/** What JSON.parse gives, with whole numbers as integers and the others as doubles, like the server's parser. */
export function fromPlain(value: unknown): Json {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isInteger(value) ? new Int(value) : new Double(value);
  if (Array.isArray(value)) return value.map(fromPlain);
  if (typeof value === 'object') return new Map(Object.entries(value).map(([key, item]) => [key, fromPlain(item)]));
  throw new TypeError(`no JSON: ${typeof value}`);
}

/** The server's text. */
export function jsonText(json: Json): string {
  if (json === null || typeof json === 'boolean') return String(json);
  if (typeof json === 'string') return JSON.stringify(json);
  if (json instanceof Int) return json.value.toString();
  if (json instanceof Double) return doubleText(json.value);
  if (json instanceof Opaque) return json.text;
  if (Array.isArray(json)) return `[${json.map(jsonText).join(', ')}]`;
  return `{${sortedEntries(json)
    .map(([key, value]) => `${JSON.stringify(key)}: ${jsonText(value)}`)
    .join(', ')}}`;
}

/** By length in bytes, then by bytes: the order in which the server stores keys. */
export function sortedEntries(map: JsonMap): [string, Json][] {
  return [...map].sort(([a], [b]) => {
    const [left, right] = [Buffer.from(a), Buffer.from(b)];
    return left.length - right.length || Buffer.compare(left, right);
  });
}

function doubleText(value: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa, exponent] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const point = Number(exponent) + 1;
  if (value === 0) return `${sign}0.0`;
  if (point < -14 || (point > 15 && digits.length <= point)) {
    return `${sign}${mantissa}e${point - 1}`;
  }
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  if (digits.length <= point) return `${sign}${digits.padEnd(point, '0')}.0`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

interface Encoded {
  type: number;
  bytes: Buffer;
}

function encode(json: Json, large: boolean): Encoded {
  if (json === null) return { type: 4, bytes: Buffer.of(0) };
  if (typeof json === 'boolean') return { type: 4, bytes: Buffer.of(json ? 1 : 2) };
  if (typeof json === 'string') return { type: 12, bytes: withLength(Buffer.from(json)) };
  if (json instanceof Int) return encodeInt(json.value);
  if (json instanceof Double) {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(json.value);
    return { type: 11, bytes };
  }
  if (json instanceof Opaque) return { type: 15, bytes: Buffer.concat([Buffer.of(json.type), withLength(json.data)]) };
  const object = !Array.isArray(json);
  const entries = object ? sortedEntries(json).map(([key]) => Buffer.from(key)) : null;
  const values = object
    ? sortedEntries(json).map(([, value]) => encode(value, large))
    : json.map((v) => encode(v, large));
  const small = large ? null : container(entries, values, false);
  if (small !== null) return { type: object ? 0 : 2, bytes: small };
  return { type: object ? 1 : 3, bytes: container(entries, values, true)! };
}

function container(keys: Buffer[] | null, values: Encoded[], large: boolean): Buffer | null {
  const width = large ? 4 : 2;
  const head: number[] = [];
  const body: Buffer[] = [];
  let bodyAt = 2 * width + values.length * (1 + width + (keys === null ? 0 : width + 2));
  const put = (n: number, bytes: number): void => {
    for (let i = 0; i < bytes; i++) head.push(Math.floor(n / 256 ** i) % 256);
  };
  const place = (bytes: Buffer): number => {
    const at = bodyAt;
    body.push(bytes);
    bodyAt += bytes.length;
    return at;
  };
  for (const key of keys ?? []) {
    put(place(key), width);
    put(key.length, 2);
  }
  for (const { type, bytes } of values) {
    head.push(type);
    if (type === 4 || type === 5 || type === 6 || (large && (type === 7 || type === 8))) {
      put(bytes.readUIntLE(0, bytes.length), width);
    } else {
      put(place(bytes), width);
    }
  }
  if (!large && (bodyAt > 0xffff || values.length > 0xffff)) return null;
  const sizes = head.splice(0);
  put(values.length, width);
  put(bodyAt, width);
  return Buffer.concat([Buffer.from([...head, ...sizes]), ...body]);
}

function encodeInt(value: bigint): Encoded {
  const within = (bits: number): boolean => BigInt.asIntN(bits, value) === value;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  if (within(16)) return { type: 5, bytes: bytes.subarray(0, 2) };
  if (within(32)) return { type: 7, bytes: bytes.subarray(0, 4) };
  return { type: within(64) ? 9 : 10, bytes };
}

function withLength(data: Buffer): Buffer {
  const prefix: number[] = [];
  let rest = data.length;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) prefix.push((rest & 0x7f) | 0x80);
  prefix.push(rest);
  return Buffer.concat([Buffer.from(prefix), data]);
}
