import type { Field } from '../model/row.ts';
import { writeBytes } from './bytes.ts';
import { type HeaderMembers, notAnObject } from './header-members.ts';
import { skipCharacter, skipSpace, skipString, skipValue, unescapedLength, writeUnescaped } from './json-syntax.ts';

const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const COLON = 0x3a;
const COMMA = 0x2c;
const NULL = 0x6e;

/** Members of an object in JSON text. `begin` checks the whole of it. */
export class TextMembers implements HeaderMembers {
  #source: Buffer = Buffer.alloc(0);
  #end = 0;
  #next = 0;
  #key = 0;
  #keyEnd = 0;
  #value = 0;
  #valueEnd = 0;

  begin(field: Field): number {
    const { buffer, start, end } = field;
    const open = skipSpace(buffer, start, end);
    const behind = skipSpace(buffer, skipValue(buffer, open, end), end);
    if (behind === end && buffer[open] === NULL) return 0;
    if (behind < end || buffer[open] !== OPEN) throw notAnObject();
    this.#source = buffer;
    this.#end = end;
    const first = skipSpace(buffer, open + 1, end);
    this.#next = first;
    let count = 0;
    for (; buffer[this.#next] !== CLOSE; count++) this.next();
    this.#next = first;
    return count;
  }

  next(): void {
    const source = this.#source;
    const end = this.#end;
    const colon = skipString(source, this.#next, end);
    this.#key = this.#next + 1;
    this.#keyEnd = colon - 1;
    this.#value = skipCharacter(source, skipSpace(source, colon, end), end, COLON);
    this.#valueEnd = skipValue(source, this.#value, end);
    const behind = skipSpace(source, this.#valueEnd, end);
    this.#next = source[behind] === COMMA ? skipSpace(source, behind + 1, end) : behind;
  }

  keyLength(): number {
    return unescapedLength(this.#source, this.#key, this.#keyEnd);
  }

  writeKey(out: Buffer, at: number): number {
    return writeUnescaped(out, at, this.#source, this.#key, this.#keyEnd);
  }

  valueLength(): number {
    const first = this.#source[this.#value];
    if (first === NULL) return -1;
    if (first === QUOTE) return unescapedLength(this.#source, this.#value + 1, this.#valueEnd - 1);
    return this.#valueEnd - this.#value;
  }

  writeValue(out: Buffer, at: number): number {
    if (this.#source[this.#value] !== QUOTE) {
      return writeBytes(out, at, this.#source, this.#value, this.#valueEnd);
    }
    return writeUnescaped(out, at, this.#source, this.#value + 1, this.#valueEnd - 1);
  }
}
