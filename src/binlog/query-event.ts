import { EventType, HEADER_BYTES } from './event-header.ts';
import { u16 } from './little-endian.ts';
import { xidIn, type Xid } from './xa-prepare.ts';

/** What a statement in the log means for the transaction around it. */
export type Statement =
  | { readonly kind: 'begin' }
  | { readonly kind: 'xa start' }
  | { readonly kind: 'xa end' }
  | { readonly kind: 'xa commit'; readonly xid: Xid | null }
  | { readonly kind: 'xa rollback'; readonly xid: Xid | null }
  | { readonly kind: 'commit' }
  | { readonly kind: 'rollback' }
  | { readonly kind: 'savepoint'; readonly name: string }
  | { readonly kind: 'rollback to'; readonly name: string }
  | { readonly kind: 'other'; readonly schema: string; readonly text: string };

const BEGIN: Statement = { kind: 'begin' };
const COMMIT: Statement = { kind: 'commit' };
const ROLLBACK: Statement = { kind: 'rollback' };
const XA_START: Statement = { kind: 'xa start' };
const XA_END: Statement = { kind: 'xa end' };

/**
 * QUERY: thread (4), seconds (4), length of the schema's name (1), error (2), length of the status variables (2);
 * status variables, schema, 0, text. LOAD DATA's event has 13 bytes more before the status variables.
 * Texts are read as latin1: bytes stay what they are, whatever the session's character set.
 */
export function readStatement(buffer: Buffer, start: number, bodyEnd: number): Statement {
  const body = start + HEADER_BYTES;
  const variables = body + (buffer[start + 4] === EventType.ExecuteLoadQuery ? 26 : 13);
  if (variables > bodyEnd) throw new RangeError('query event too short');
  const schema = variables + u16(buffer, body + 11);
  const text = schema + buffer[body + 8] + 1;
  if (text > bodyEnd) throw new RangeError('query event too short');
  if (isBegin(buffer, text, bodyEnd)) return BEGIN;
  return classify(buffer.toString('latin1', text, bodyEnd), () => buffer.toString('latin1', schema, text - 1));
}

/** Nearly every statement in a row-based log; told without making a string. */
function isBegin(b: Buffer, p: number, end: number): boolean {
  return end - p === 5 && b[p] === 66 && b[p + 1] === 69 && b[p + 2] === 71 && b[p + 3] === 73 && b[p + 4] === 78;
}

const LONGEST_MARKER = 1024;
const MARKER =
  /^\s*(?:xa\s+(?<xa>start|begin|end|commit|rollback)\b(?<xid>.*)|(?<ending>commit|rollback)\s*$|savepoint\s+(?<savepoint>.+)$|rollback\s+to\s+(?<back>.+)$)/is;

interface Marker {
  readonly xa?: string;
  readonly xid?: string;
  readonly ending?: string;
  readonly savepoint?: string;
  readonly back?: string;
}

function classify(text: string, schema: () => string): Statement {
  const {
    xa,
    xid = '',
    ending,
    savepoint,
    back,
  } = (MARKER.exec(text.slice(0, LONGEST_MARKER))?.groups as Marker | undefined) ?? {};
  if (xa !== undefined) return xaStatement(xa.toLowerCase(), xid);
  if (ending !== undefined) return ending.toLowerCase() === 'commit' ? COMMIT : ROLLBACK;
  if (savepoint !== undefined) return { kind: 'savepoint', name: savepointName(savepoint) };
  if (back !== undefined) return { kind: 'rollback to', name: savepointName(back) };
  return { kind: 'other', schema: schema(), text };
}

/** A transaction that was prepared before is decided by one that holds nothing else. */
function xaStatement(verb: string, xid: string): Statement {
  switch (verb) {
    case 'commit':
      return { kind: 'xa commit', xid: xidIn(xid) };
    case 'rollback':
      return { kind: 'xa rollback', xid: xidIn(xid) };
    case 'end':
      return XA_END;
    default:
      return XA_START;
  }
}

/** Savepoint names are compared without regard to case. */
function savepointName(text: string): string {
  return text
    .replace(/^savepoint\s+/i, '')
    .trim()
    .replace(/^`|`$/g, '')
    .toLowerCase();
}
