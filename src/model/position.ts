/**
 * A place in the server's binary log: file name and byte offset of an event boundary.
 * Offsets are 64-bit on the server; a JavaScript number holds them exactly up to 2^53.
 */
export interface Position {
  readonly file: string;
  readonly offset: number;
}

/** MySQL: `sid` is the source id (`uuid` or `uuid:tag`), `gno` the number. MariaDB: `sid` is `domain-server`. */
export interface Gtid {
  readonly sid: string;
  readonly gno: number;
}

/** Consecutive transactions of one source: `sid:first-last`. */
export interface GtidRun {
  readonly sid: string;
  readonly first: number;
  readonly last: number;
}

/** What is known of the log up to a transaction boundary; saved in the offsets table. */
export interface Checkpoint {
  readonly position: Position;
  /** Executed GTIDs up to the position, as the server writes a set; null where GTIDs are off. */
  readonly gtidSet: string | null;
  /**
   * Where the last transaction before the position begins, whatever it was about; null when none was seen. The log is
   * the one that was read when that transaction is still there.
   */
  readonly lastBegin: Position | null;
  /** Its GTID. */
  readonly lastGtid: string | null;
  /** Its commit time by the server's clock, microseconds since the epoch; null when none was seen. */
  readonly lastCommitMicros: number | null;
}

/** No dump begins behind it: its command has 32 bits for the offset, whatever the length of the file. */
export const MAX_START_OFFSET = 0xffff_ffff;

/** Order of two positions of one server. File names end in a number that may grow beyond its padding. */
export function comparePositions(a: Position, b: Position): number {
  if (a.file !== b.file) return fileNumber(a.file) - fileNumber(b.file);
  return a.offset - b.offset;
}

/** The sequence number at the end of a binlog file name (`binlog.000127` is 127). */
export function fileNumber(file: string): number {
  return Number(file.slice(file.lastIndexOf('.') + 1));
}

export function formatPosition(position: Position): string {
  return `${position.file}:${position.offset}`;
}

/** As the server writes one: `uuid:23`, `uuid:tag:23`, or MariaDB's `0-1-23`. */
export function formatGtid({ sid, gno }: Gtid): string {
  return sid.length < UUID_LENGTH ? `${sid}-${gno}` : `${sid}:${gno}`;
}

const UUID_LENGTH = 36;
