import { fault, type RelayError } from '../model/fault.ts';

/**
 * JSON as text (RFC 8259), read where it stands: where values end, and what strings mean. Used for the headers of
 * servers and queries that hand out JSON columns as text.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** As deep as the server allows (JSON_DOCUMENT_MAX_DEPTH). */
const MAX_DEPTH = 100;
const REPLACEMENT = 0xfffd;

function malformed(): RelayError {
  return fault('ROW_ENCODING', 'reject', 'headers are not valid JSON');
}

/** The first offset from `at` on that holds no white space, or `end`. */
export function skipSpace(source: Buffer, at: number, end: number): number {
  while (at < end && (source[at] === 0x20 || source[at] === 0x0a || source[at] === 0x0d || source[at] === 0x09)) at++;
  return at;
}

/** Throws unless `character` stands at `at`; returns the offset of what follows, white space skipped. */
export function skipCharacter(source: Buffer, at: number, end: number, character: number): number {
  if (at >= end || source[at] !== character) throw malformed();
  return skipSpace(source, at + 1, end);
}

/** Checks the value at `at` (no white space in front); returns the offset behind it. */
export function skipValue(source: Buffer, at: number, end: number, depth = 1): number {
  if (at >= end || depth > MAX_DEPTH) throw malformed();
  switch (source[at]) {
    case 0x7b:
      return skipContainer(source, at, end, depth, 0x7d);
    case 0x5b:
      return skipContainer(source, at, end, depth, 0x5d);
    case QUOTE:
      return skipString(source, at, end);
    case 0x6e:
      return skipWord(source, at, end, NULL);
    case 0x74:
      return skipWord(source, at, end, TRUE);
    case 0x66:
      return skipWord(source, at, end, FALSE);
    default:
      return skipNumber(source, at, end);
  }
}

const NULL = Buffer.from('null', 'latin1');
const TRUE = Buffer.from('true', 'latin1');
const FALSE = Buffer.from('false', 'latin1');

function skipWord(source: Buffer, at: number, end: number, word: Buffer): number {
  for (let i = 0; i < word.length; i++) {
    if (at + i >= end || source[at + i] !== word[i]) throw malformed();
  }
  return at + word.length;
}

function skipContainer(source: Buffer, at: number, end: number, depth: number, close: number): number {
  at = skipSpace(source, at + 1, end);
  if (at < end && source[at] === close) return at + 1;
  for (;;) {
    if (close === 0x7d) at = skipKey(source, at, end);
    at = skipSpace(source, skipValue(source, at, end, depth + 1), end);
    if (at < end && source[at] === close) return at + 1;
    at = skipCharacter(source, at, end, 0x2c);
  }
}

/** Checks a member's name and the colon; returns the offset of its value. */
function skipKey(source: Buffer, at: number, end: number): number {
  return skipCharacter(source, skipSpace(source, skipString(source, at, end), end), end, 0x3a);
}

/** Checks the string whose opening quote stands at `at`; returns the offset behind its closing one. */
export function skipString(source: Buffer, at: number, end: number): number {
  if (at >= end || source[at] !== QUOTE) throw malformed();
  for (let i = at + 1; i < end; i++) {
    const byte = source[i];
    if (byte === QUOTE) return i + 1;
    if (byte < 0x20) throw malformed();
    if (byte !== BACKSLASH) continue;
    i++;
    if (i >= end || ESCAPED[source[i]] === 0) throw malformed();
    if (source[i] !== 0x75) continue;
    for (let k = 1; k <= 4; k++) if (i + k >= end || hexDigit(source[i + k]) < 0) throw malformed();
    i += 4;
  }
  throw malformed();
}

function skipNumber(source: Buffer, at: number, end: number): number {
  if (source[at] === 0x2d) at++;
  if (at < end && source[at] === 0x30) at++;
  else at = skipDigits(source, at, end);
  if (at < end && source[at] === 0x2e) at = skipDigits(source, at + 1, end);
  if (at < end && (source[at] | 0x20) === 0x65) {
    at++;
    if (at < end && (source[at] === 0x2b || source[at] === 0x2d)) at++;
    at = skipDigits(source, at, end);
  }
  return at;
}

function skipDigits(source: Buffer, at: number, end: number): number {
  const first = at;
  while (at < end && source[at] >= 0x30 && source[at] <= 0x39) at++;
  if (at === first) throw malformed();
  return at;
}

/** By the letter behind a backslash: the character meant; `u` for a code unit, 0 for what is no escape. */
const ESCAPED = new Uint8Array(256);
for (const [letter, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t', 'uu']) {
  ESCAPED[letter.charCodeAt(0)] = character.charCodeAt(0);
}

/** Bytes of UTF-8 that the inside of a checked string means. */
export function unescapedLength(source: Buffer, start: number, end: number): number {
  let length = 0;
  for (let i = start; i < end;) {
    if (source[i] !== BACKSLASH) {
      length++;
      i++;
    } else {
      const point = escapedPoint(source, i, end);
      length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x1_0000 ? 3 : 4;
      i += escapeLength(source, i, point);
    }
  }
  return length;
}

/** Writes what the inside of a checked string means as UTF-8; returns the offset behind it. */
export function writeUnescaped(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
  for (let i = start; i < end;) {
    if (source[i] !== BACKSLASH) {
      out[at++] = source[i++];
    } else {
      const point = escapedPoint(source, i, end);
      at = writePoint(out, at, point);
      i += escapeLength(source, i, point);
    }
  }
  return at;
}

/** The code point of the escape at `at`; a surrogate without its other half becomes U+FFFD. */
function escapedPoint(source: Buffer, at: number, end: number): number {
  if (source[at + 1] !== 0x75) return ESCAPED[source[at + 1]];
  const unit = codeUnit(source, at + 2);
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  if (unit < 0xdc00 && at + 12 <= end && source[at + 6] === BACKSLASH && source[at + 7] === 0x75) {
    const low = codeUnit(source, at + 8);
    if (low >= 0xdc00 && low <= 0xdfff) return 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  }
  return REPLACEMENT;
}

/** Bytes of the escape at `at` that means `point`. */
function escapeLength(source: Buffer, at: number, point: number): number {
  if (source[at + 1] !== 0x75) return 2;
  return point >= 0x1_0000 ? 12 : 6;
}

function codeUnit(source: Buffer, at: number): number {
  let unit = 0;
  for (let i = at; i < at + 4; i++) unit = unit * 16 + hexDigit(source[i]);
  return unit;
}

/** -1 for what is no hexadecimal digit. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function writePoint(out: Buffer, at: number, point: number): number {
  if (point < 0x80) {
    out[at] = point;
    return at + 1;
  }
  const more = point < 0x800 ? 1 : point < 0x1_0000 ? 2 : 3;
  out[at] = LEAD[more] | (point >>> (6 * more));
  for (let i = 1; i <= more; i++) out[at + i] = 0x80 | ((point >>> (6 * (more - i))) & 0x3f);
  return at + 1 + more;
}

/** First bits of UTF-8's leading byte, by the number of bytes that follow. */
const LEAD = [0, 0xc0, 0xe0, 0xf0];
