import type { Field } from '../model/row.ts';
import { writeBytes } from './bytes.ts';
import { type HeaderMembers, notAnObject } from './header-members.ts';
import {
  corrupt,
  dataStart,
  isInlined,
  isLarge,
  isObject,
  LITERAL,
  LITERAL_NULL,
  OPAQUE,
  size,
  STRING,
  uint16,
  valueBytes,
} from './json-binary.ts';
import { isQuotedOpaque, opaqueLength, writeOpaque } from './json-opaque.ts';
import { jsonValueLength, writeJsonValue } from './json-text.ts';

/** Members of an object in MySQL's binary JSON. */
export class BinaryMembers implements HeaderMembers {
  #source: Buffer = Buffer.alloc(0);
  #object = 0;
  #end = 0;
  #large = false;
  #keyEntry = 0;
  #entry = 0;
  #free = 0;
  #key = 0;
  #keyEnd = 0;
  #type = 0;
  #value = 0;
  #valueEnd = 0;

  begin(field: Field): number {
    const { buffer, start, end } = field;
    // No bytes at all are the server's other form of null.
    if (start === end) return 0;
    const type = buffer[start];
    const bytes = valueBytes(type, buffer, start + 1, end);
    if (type === LITERAL && buffer[start + 1] === LITERAL_NULL) return 0;
    if (!isObject(type)) throw notAnObject();
    this.#source = buffer;
    this.#object = start + 1;
    this.#end = start + 1 + bytes;
    this.#large = isLarge(type);
    const width = this.#large ? 4 : 2;
    const count = size(buffer, this.#object, this.#large);
    this.#keyEntry = this.#object + 2 * width;
    this.#entry = this.#keyEntry + count * (width + 2);
    this.#free = this.#end - this.#entry - count * (width + 1);
    return count;
  }

  next(): void {
    const source = this.#source;
    const width = this.#large ? 4 : 2;
    this.#key = this.#object + size(source, this.#keyEntry, this.#large);
    this.#keyEnd = this.#key + uint16(source, this.#keyEntry + width);
    this.#keyEntry += width + 2;
    this.#free -= this.#keyEnd - this.#key;
    if (this.#keyEnd > this.#end) throw corrupt('a key does not fit into its object');
    this.#type = source[this.#entry];
    if (isInlined(this.#type, this.#large)) {
      this.#value = this.#entry + 1;
      this.#valueEnd = this.#value + width;
    } else {
      this.#value = this.#object + size(source, this.#entry + 1, this.#large);
      const bytes = valueBytes(this.#type, source, this.#value, this.#end);
      this.#valueEnd = this.#value + bytes;
      this.#free -= bytes;
    }
    if (this.#free < 0) throw corrupt('members do not fit into their object');
    this.#entry += width + 1;
  }

  keyLength(): number {
    return this.#keyEnd - this.#key;
  }

  writeKey(out: Buffer, at: number): number {
    return writeBytes(out, at, this.#source, this.#key, this.#keyEnd);
  }

  valueLength(): number {
    const source = this.#source;
    if (this.#type === LITERAL && source[this.#value] === LITERAL_NULL) return -1;
    if (this.#type === STRING) return this.#valueEnd - dataStart(source, this.#value);
    if (this.#isOpaqueString()) return opaqueLength(source, this.#value, this.#valueEnd, false);
    return jsonValueLength(this.#type, source, this.#value, this.#valueEnd);
  }

  writeValue(out: Buffer, at: number): number {
    const source = this.#source;
    if (this.#type === STRING) return writeBytes(out, at, source, dataStart(source, this.#value), this.#valueEnd);
    if (this.#isOpaqueString()) return writeOpaque(out, at, source, this.#value, this.#valueEnd, false);
    return writeJsonValue(this.#type, source, this.#value, this.#valueEnd, out, at);
  }

  /** Dates, times and binary data: the server prints them as strings. */
  #isOpaqueString(): boolean {
    return this.#type === OPAQUE && isQuotedOpaque(this.#source, this.#value);
  }
}
