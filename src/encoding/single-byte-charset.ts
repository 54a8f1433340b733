import { type Charset, QUESTION_MARK, writeCodePoint } from './charset.ts';

/** A set of one byte a character: a table of 256. */
export class SingleByteCharset implements Charset {
  readonly name: string;
  readonly isAsciiCompatible: boolean;
  readonly growth = 3;
  readonly #codes: Uint16Array;

  /** `characters` are those from 0x80 on, or all of a set that is not ASCII below; NUL behind the first: none. */
  constructor(name: string, characters: string) {
    this.name = name;
    this.isAsciiCompatible = characters.length === 128;
    const from = 256 - characters.length;
    this.#codes = Uint16Array.from({ length: 256 }, (_, byte) => {
      if (byte < from || byte === 0) return byte;
      const code = characters.charCodeAt(byte - from);
      return code === 0 ? QUESTION_MARK : code;
    });
  }

  write(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
    const codes = this.#codes;
    for (let i = start; i < end; i++) at = writeCodePoint(out, at, codes[source[i]]);
    return at;
  }
}
