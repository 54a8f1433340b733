import { fault, type RelayError } from '../model/fault.ts';
import type { Field } from '../model/row.ts';

/**
 * Walks the members of a `headers` object in the order in which they are stored. A string is worth its text, JSON null
 * is a null header, anything else is worth its JSON text. One row is walked at a time.
 */
export interface HeaderMembers {
  /**
   * Stands before the first member; returns how many there are. JSON null is what mappers write for "none": it has no
   * members. Throws a `RelayError` (ROW_ENCODING) when the field holds no object, or nothing well formed.
   */
  begin(field: Field): number;
  /** Steps onto the next member; called at most as often as `begin` said. Throws a `RelayError` (ROW_ENCODING). */
  next(): void;
  keyLength(): number;
  writeKey(out: Buffer, at: number): number;
  /** -1: a null header. */
  valueLength(): number;
  writeValue(out: Buffer, at: number): number;
}

export function notAnObject(): RelayError {
  return fault('ROW_ENCODING', 'reject', 'headers are not a JSON object');
}
