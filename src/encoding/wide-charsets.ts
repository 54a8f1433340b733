import { type Charset, QUESTION_MARK, writeCodePoint } from './charset.ts';

/** Unicode in units of two or four bytes. */
export class WideCharset implements Charset {
  readonly name: string;
  readonly isAsciiCompatible = false;
  readonly growth = 2;
  readonly #unitBytes: 2 | 4;
  readonly #littleEndian: boolean;
  readonly #pairs: boolean;

  /** `pairs`: two units may be one character beyond the BMP. */
  constructor(name: string, unitBytes: 2 | 4, littleEndian: boolean, pairs: boolean) {
    this.name = name;
    this.#unitBytes = unitBytes;
    this.#littleEndian = littleEndian;
    this.#pairs = pairs;
  }

  write(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
    const bytes = this.#unitBytes;
    let i = start;
    for (; i + bytes <= end; i += bytes) {
      let code = this.#unit(source, i);
      if (this.#pairs && isHigh(code) && i + 2 * bytes <= end) {
        const low = this.#unit(source, i + bytes);
        if (isLow(low)) {
          code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          i += bytes;
        }
      }
      at = writeCodePoint(out, at, isCharacter(code) ? code : QUESTION_MARK);
    }
    if (i < end) out[at++] = QUESTION_MARK;
    return at;
  }

  #unit(source: Buffer, i: number): number {
    if (this.#unitBytes === 4) return source.readUInt32BE(i);
    return this.#littleEndian ? source[i] | (source[i + 1] << 8) : (source[i] << 8) | source[i + 1];
  }
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}

/** No half of a pair, and no more than Unicode has. */
function isCharacter(code: number): boolean {
  return code < 0xd800 || (code >= 0xe000 && code < 0x11_0000);
}
