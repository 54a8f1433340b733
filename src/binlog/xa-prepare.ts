import { HEADER_BYTES } from './event-header.ts';
import { u32 } from './little-endian.ts';

/** What names an XA transaction in the log: two parts in hexadecimal digits and a number, as statements have them. */
export type Xid = string;

export interface XaPrepare {
  /** Prepared and committed in one. */
  readonly onePhase: boolean;
  readonly xid: Xid;
}

const PARTS_AT = HEADER_BYTES + 13;

/** XA_PREPARE: one phase (1), format (4), length of the first part (4), of the second (4), the parts. */
export function readXaPrepare(b: Buffer, start: number, bodyEnd: number): XaPrepare {
  const first = start + PARTS_AT;
  if (first > bodyEnd) throw new RangeError('XA prepare event too short');
  const second = first + u32(b, first - 8);
  const end = second + u32(b, first - 4);
  if (!(end <= bodyEnd)) throw new RangeError('a field reaches beyond its event');
  const xid = `${b.toString('hex', first, second)},${b.toString('hex', second, end)},${u32(b, first - 12)}`;
  return { onePhase: b[start + HEADER_BYTES] !== 0, xid };
}

const XID = /^\s*x'(?<first>[0-9a-f]*)'\s*,\s*x'(?<second>[0-9a-f]*)'\s*,\s*(?<format>\d+)/i;

/** What follows XA COMMIT or XA ROLLBACK: `X'6f72',X'',1`. Null when it is written otherwise. */
export function xidIn(text: string): Xid | null {
  const { first, second, format } = (XID.exec(text)?.groups ?? {}) as Partial<Record<string, string>>;
  if (first === undefined || second === undefined || format === undefined) return null;
  return `${first},${second},${format}`.toLowerCase();
}
