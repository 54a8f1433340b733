import iconv from 'iconv-lite';
import { type Charset, QUESTION_MARK, writeCodePoint } from './charset.ts';

/** How characters of more than one byte are told apart; a set's own bytes are below. */
export interface Shape {
  /** The set of iconv-lite that comes nearest. */
  readonly near: string;
  /** First bytes that are a character of their own. */
  readonly singles?: readonly [first: number, last: number];
  /** 0x8f leads three bytes. */
  readonly threes?: boolean;
  /** A digit as the second byte makes it four. */
  readonly fours?: boolean;
}

/** Four-byte codes of GB18030 as one number each: up to here BMP, and from the second on everything beyond. */
const BMP_FOURS = 39_420;
const FIRST_SUPPLEMENTARY = 189_000;
const NOTHING_BEHIND = FIRST_SUPPLEMENTARY + 0x10_0000;

/**
 * A set of the Far East: iconv-lite's mapping, and over it the exceptions in which the server differs. Characters are
 * looked up when they are first met, and remembered.
 */
export class MultiByteCharset implements Charset {
  readonly name: string;
  readonly isAsciiCompatible = true;
  readonly growth = 3;
  readonly #shape: Shape;
  readonly #exceptions: ReadonlyMap<number, number>;
  /** By the two bytes, or the two behind 0x8f. */
  readonly #pairs = new Uint16Array(0x1_0000);
  readonly #threes: Uint16Array;
  readonly #fours: Uint16Array;

  /** `exceptions`: see `readExceptions`. */
  constructor(name: string, shape: Shape, exceptions: string) {
    this.name = name;
    this.#shape = shape;
    this.#exceptions = readExceptions(exceptions);
    this.#threes = new Uint16Array(shape.threes === true ? 0x1_0000 : 0);
    this.#fours = new Uint16Array(shape.fours === true ? BMP_FOURS : 0);
  }

  write(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
    const { singles, threes, fours } = this.#shape;
    let i = start;
    while (i < end) {
      const lead = source[i];
      if (lead < 0x80) {
        out[at++] = lead;
        i += 1;
      } else if (singles !== undefined && lead >= singles[0] && lead <= singles[1]) {
        at = writeCodePoint(out, at, (this.#pairs[lead] ||= this.#learn(source, i, 1)));
        i += 1;
      } else if (threes === true && lead === 0x8f && i + 2 < end) {
        const code = (source[i + 1] << 8) | source[i + 2];
        at = writeCodePoint(out, at, (this.#threes[code] ||= this.#learn(source, i, 3)));
        i += 3;
      } else if (fours === true && i + 3 < end && source[i + 1] >= 0x30 && source[i + 1] <= 0x39) {
        at = writeCodePoint(out, at, this.#four(source, i));
        i += 4;
      } else if (i + 1 < end) {
        const code = (lead << 8) | source[i + 1];
        at = writeCodePoint(out, at, (this.#pairs[code] ||= this.#learn(source, i, 2)));
        i += 2;
      } else {
        out[at++] = QUESTION_MARK;
        i += 1;
      }
    }
    return at;
  }

  #four(source: Buffer, i: number): number {
    const first = (source[i] - 0x81) * 10 + source[i + 1] - 0x30;
    const number = (first * 126 + source[i + 2] - 0x81) * 10 + source[i + 3] - 0x30;
    if (number >= 0 && number < BMP_FOURS) return (this.#fours[number] ||= this.#learn(source, i, 4));
    if (number < FIRST_SUPPLEMENTARY || number >= NOTHING_BEHIND) return QUESTION_MARK;
    return 0x1_0000 + number - FIRST_SUPPLEMENTARY;
  }

  #learn(source: Buffer, i: number, bytes: number): number {
    const exception = this.#exceptions.get(source.readUIntBE(i, bytes));
    if (exception !== undefined) return exception;
    return nearCode(this.#shape.near, source.subarray(i, i + bytes)) ?? QUESTION_MARK;
  }
}

/** iconv-lite's code point of one character; null when it has none in the BMP. */
export function nearCode(near: string, character: Buffer): number | null {
  const text = iconv.decode(character, near);
  if (text.length !== 1) return null;
  // iconv-lite's sign of no character is a character itself, and GB18030 has it.
  return text !== '\ufffd' || iconv.encode(text, near).equals(character) ? text.charCodeAt(0) : null;
}

/**
 * Runs of character codes, in hexadecimal: `a1c0:5c` is U+005C; `f5a1-f5fe:e000` counts up from U+E000; `a2af-a2fe:`
 * are undefined. Codes are the characters' bytes as one number.
 */
function readExceptions(text: string): Map<number, number> {
  const exceptions = new Map<number, number>();
  for (const run of text.split(' ')) {
    const [codes, unicode] = run.split(':');
    const [first, last = first] = codes.split('-').map((code) => parseInt(code, 16));
    for (let code = first; code <= last; code++) {
      exceptions.set(code, unicode === '' ? QUESTION_MARK : parseInt(unicode, 16) + code - first);
    }
  }
  exceptions.delete(NaN);
  return exceptions;
}
