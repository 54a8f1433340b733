import { type Charset } from './charset.ts';
import { EXCEPTIONS } from './multi-byte-exceptions.ts';
import { MultiByteCharset, type Shape } from './multi-byte-charset.ts';
import { SingleByteCharset } from './single-byte-charset.ts';
import { SINGLE_BYTE_CHARACTERS } from './single-byte-characters.ts';
import { WideCharset } from './wide-charsets.ts';

/** Character sets whose bytes are UTF-8, or no text at all: they go out as they are. */
const AS_THEY_ARE: ReadonlySet<string> = new Set(['utf8mb4', 'utf8mb3', 'utf8', 'ascii', 'binary']);

export const MULTI_BYTE_SHAPES: Readonly<Record<string, Shape>> = {
  big5: { near: 'cp950' },
  cp932: { near: 'cp932', singles: [0xa1, 0xdf] },
  eucjpms: { near: 'euc-jp', threes: true },
  euckr: { near: 'euc-kr' },
  gb18030: { near: 'gb18030', fours: true },
  gb2312: { near: 'gb2312' },
  gbk: { near: 'gbk' },
  sjis: { near: 'shift_jis', singles: [0xa1, 0xdf] },
  ujis: { near: 'euc-jp', threes: true },
};

const WIDE: Readonly<Record<string, () => Charset>> = {
  ucs2: () => new WideCharset('ucs2', 2, false, false),
  utf16: () => new WideCharset('utf16', 2, false, true),
  utf16le: () => new WideCharset('utf16le', 2, true, true),
  utf32: () => new WideCharset('utf32', 4, false, false),
};

const made = new Map<string, Charset>();

/** True for text that is UTF-8 already (and for bytes that are no text). */
export function isUtf8(name: string): boolean {
  return AS_THEY_ARE.has(name);
}

/** The set of this name (as `information_schema.CHARACTER_SETS` has it); null when it is none that is known here. */
export function charsetNamed(name: string): Charset | null {
  let charset = made.get(name) ?? null;
  if (charset === null) {
    charset = make(name);
    if (charset !== null) made.set(name, charset);
  }
  return charset;
}

/** `bytes` of this character set as UTF-8; null when the set is not known here. For names and labels, not for rows. */
export function toUtf8(name: string, bytes: Buffer): Buffer | null {
  if (isUtf8(name)) return bytes;
  const charset = charsetNamed(name);
  if (charset === null) return null;
  const out = Buffer.alloc(bytes.length * charset.growth);
  return out.subarray(0, charset.write(out, 0, bytes, 0, bytes.length));
}

function make(name: string): Charset | null {
  if (Object.hasOwn(SINGLE_BYTE_CHARACTERS, name)) return new SingleByteCharset(name, SINGLE_BYTE_CHARACTERS[name]);
  if (Object.hasOwn(MULTI_BYTE_SHAPES, name))
    return new MultiByteCharset(name, MULTI_BYTE_SHAPES[name], EXCEPTIONS[name]);
  return Object.hasOwn(WIDE, name) ? WIDE[name]() : null;
}
