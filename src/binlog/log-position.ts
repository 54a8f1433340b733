import type { Position } from '../model/position.ts';

const WRAP = 0x1_0000_0000;

/**
 * Where the stream stands in the log. Event headers carry 32 bits of the end position, files may be longer: the
 * offset is 64-bit and follows the headers modulo 2^32.
 */
export class LogPosition {
  file: string;
  /** Behind the event that was read last. */
  offset: number;
  /** Where that event begins: a stream may be read from there with `mysqlbinlog --start-position`. */
  eventAt: number;

  constructor(position: Position) {
    this.file = position.file;
    this.offset = position.offset;
    this.eventAt = position.offset;
  }

  /**
   * Takes an event of `size` bytes that says to end at `end` (mod 2^32). The end may lie further ahead than the size
   * (the server left events out); false when it lies behind: this is not the stream it was.
   */
  advance(size: number, end: number): boolean {
    this.eventAt = this.offset;
    const ahead = (end - this.offset) >>> 0;
    if (ahead === size) {
      this.offset += size;
      return true;
    }
    // No event ends nowhere: 0 is "not said" (artificial events; MariaDB inside transactions), the next one tells.
    if (end === 0) return true;
    if (ahead < size || ahead >= WRAP / 2) return false;
    this.offset += ahead;
    this.eventAt = this.offset - size;
    return true;
  }

  rotate(file: string, offset: number): void {
    this.file = file;
    this.offset = offset;
    this.eventAt = offset;
  }

  /** For messages. */
  toString(): string {
    return `${this.file}:${this.eventAt}`;
  }
}
