import { fault } from '../model/fault.ts';
import {
  type Checkpoint,
  comparePositions,
  formatGtid,
  formatPosition,
  MAX_START_OFFSET,
  type Position,
} from '../model/position.ts';
import { EventType } from './event-header.ts';
import { GroupStart } from './gtid-event.ts';
import { u32 } from './little-endian.ts';

/** A checkpoint that knows the transaction before it. */
export type KnownCheckpoint = Checkpoint & { readonly lastBegin: Position };

/**
 * Whether the log is the one in which the checkpoint was reached: file names, offsets and GTIDs come again after a reset
 * or from a restored backup, the time of a commit does not. A stream begins at the transaction before the checkpoint:
 * it must be there as it was, and an event must end where the checkpoint lies. What lies between is passed over.
 */
export class Reunion {
  readonly begin: Position;
  readonly #from: KnownCheckpoint;
  readonly #found = new GroupStart();
  #hasMet = false;

  constructor(from: KnownCheckpoint) {
    this.#from = from;
    this.begin = from.lastBegin;
  }

  /** Null where nothing is known to meet, or no dump can begin there. */
  static at(from: Checkpoint): Reunion | null {
    const { lastBegin, lastCommitMicros } = from;
    if (lastBegin === null || lastCommitMicros === null || lastBegin.offset > MAX_START_OFFSET) return null;
    return new Reunion({ ...from, lastBegin });
  }

  get hasMet(): boolean {
    return this.#hasMet;
  }

  /** The first event of the file that means something. Throws a RelayError when another transaction begins with it. */
  meet(type: number, b: Buffer, start: number, bodyEnd: number): void {
    const found = this.#found;
    const seconds = u32(b, start);
    if (type === EventType.Gtid) found.readGtid(b, start, bodyEnd, seconds);
    else if (type === EventType.AnonymousGtid) found.readAnonymous(b, start, bodyEnd, seconds);
    else if (type === EventType.TaggedGtid) found.readTagged(b, start, bodyEnd, seconds);
    else if (type === EventType.MariadbGtid) found.readMariadb(b, start, bodyEnd, seconds);
    else found.none(seconds);
    const { lastGtid, lastCommitMicros } = this.#from;
    const gtid = found.sid === null ? null : formatGtid({ sid: found.sid, gno: found.gno });
    if (gtid !== lastGtid || found.commitMicros !== lastCommitMicros) {
      const saved = inWords(lastGtid, lastCommitMicros);
      throw this.#unusable(
        `at ${formatPosition(this.begin)}, before it, began ${saved}; now ${inWords(gtid, found.commitMicros)} ` +
          'begins there: the server was reset, or restored from a backup',
      );
    }
    this.#hasMet = true;
  }

  /** True at the checkpoint: what follows is news. Throws a RelayError when it turns out not to be there. */
  isOver(position: Position): boolean {
    const order = comparePositions(position, this.#from.position);
    if (order < 0) return false;
    if (order > 0) throw this.#unusable(`no event ends there: one ends at ${formatPosition(position)}`);
    if (!this.#hasMet) throw this.#unusable(`the transaction before it, at ${formatPosition(this.begin)}, is gone`);
    return true;
  }

  /** The server has nothing behind `end` yet. Throws a RelayError when the checkpoint lies there. */
  logEnds(end: Position): void {
    if (comparePositions(end, this.#from.position) >= 0) return;
    throw this.#unusable(`the log ends before it, at ${formatPosition(end)}: it was cut short, or restored`);
  }

  #unusable(why: string): Error {
    const at = formatPosition(this.#from.position);
    return fault('BINLOG_POSITION_UNUSABLE', 'halt', `the log is not the one that was read up to ${at}: ${why}`);
  }
}

function inWords(gtid: string | null, commitMicros: number | null): string {
  const at = commitMicros === null ? 'no known time' : timeText(commitMicros);
  return `${gtid === null ? 'a transaction' : `transaction ${gtid}`} of ${at}`;
}

function timeText(micros: number): string {
  const micro = String(micros % 1_000_000).padStart(6, '0');
  return new Date(micros / 1_000).toISOString().replace(/\.\d+Z$/, `.${micro}Z`);
}
