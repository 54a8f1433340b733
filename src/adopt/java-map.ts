/**
 * Reads a `java.util.HashMap` of byte arrays as `ObjectOutputStream` writes it: what Kafka Connect's file offset storage
 * holds. Nothing else is understood, and nothing is instantiated. (Java Object Serialization Specification, chapter 6.)
 */
const MAGIC = 0xaced0005;
const TC_NULL = 0x70;
const TC_REFERENCE = 0x71;
const TC_CLASSDESC = 0x72;
const TC_OBJECT = 0x73;
const TC_ARRAY = 0x75;
const TC_BLOCKDATA = 0x77;
const TC_ENDBLOCKDATA = 0x78;
const FIRST_HANDLE = 0x7e0000;
const MAP = 'java.util.HashMap';
const BYTES = '[B';

export interface MapEntry {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
}

/** Throws a RangeError for what is no such map. */
export function readJavaMap(file: Buffer): MapEntry[] {
  const reader = new Reader(file);
  if (reader.u32() !== MAGIC) throw new RangeError('not written by Java serialization');
  reader.expect(TC_OBJECT, 'an object');
  if (reader.classOf() !== MAP) throw new RangeError(`not a ${MAP}`);
  reader.newHandle('map');
  reader.skip(8); // load factor, threshold
  reader.expect(TC_BLOCKDATA, 'the size of the map');
  if (reader.u8() !== 8) throw new RangeError('the size of the map is not where it should be');
  reader.skip(4); // capacity
  const size = reader.u32();
  const entries: MapEntry[] = [];
  for (let i = 0; i < size; i++) entries.push({ key: reader.byteArray(), value: reader.byteArray() });
  reader.expect(TC_ENDBLOCKDATA, 'the end of the map');
  return entries;
}

class Reader {
  readonly #buffer: Buffer;
  #at = 0;
  /** What may be referred to: names of classes, byte arrays. */
  readonly #handles: (string | Buffer)[] = [];

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#forward(1));
  }

  u32(): number {
    return this.#buffer.readUInt32BE(this.#forward(4));
  }

  skip(bytes: number): void {
    this.#forward(bytes);
  }

  expect(tag: number, what: string): void {
    if (this.u8() !== tag) throw new RangeError(`${what} is not where it should be`);
  }

  newHandle(of: string | Buffer): void {
    this.#handles.push(of);
  }

  /** The name of a class: described here, or before. */
  classOf(): string {
    const tag = this.u8();
    if (tag === TC_REFERENCE) {
      const known = this.#handles.at(this.u32() - FIRST_HANDLE);
      if (typeof known === 'string') return known;
    }
    if (tag !== TC_CLASSDESC) throw new RangeError('a class is not where it should be');
    const name = this.#text();
    this.skip(8); // serialVersionUID
    this.newHandle(name);
    this.skip(1); // flags
    for (let fields = this.#u16(); fields > 0; fields--) {
      const type = String.fromCharCode(this.u8());
      if (type === '[' || type === 'L') throw new RangeError(`${name} has a field that is an object`);
      this.#text();
    }
    this.expect(TC_ENDBLOCKDATA, 'the end of a class');
    this.expect(TC_NULL, 'the end of its classes');
    return name;
  }

  byteArray(): Buffer | null {
    const tag = this.u8();
    if (tag === TC_NULL) return null;
    if (tag === TC_REFERENCE) {
      const known = this.#handles.at(this.u32() - FIRST_HANDLE);
      if (Buffer.isBuffer(known)) return known;
    }
    if (tag !== TC_ARRAY || this.classOf() !== BYTES) throw new RangeError('the map holds something else than bytes');
    const length = this.u32();
    const start = this.#forward(length);
    const bytes = this.#buffer.subarray(start, start + length);
    this.newHandle(bytes);
    return bytes;
  }

  #u16(): number {
    return this.#buffer.readUInt16BE(this.#forward(2));
  }

  #text(): string {
    const length = this.#u16();
    const start = this.#forward(length);
    return this.#buffer.toString('utf8', start, start + length);
  }

  #forward(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#buffer.length) throw new RangeError('the file ends too early');
    this.#at += bytes;
    return at;
  }
}
