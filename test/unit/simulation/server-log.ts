import type { Checkpoint, Position } from '../../../src/model/position.ts';
import type { EventLoop } from './event-loop.ts';
import type { WriteKind } from './plan.ts';
import type { TableRow } from './table.ts';

/** A transaction in the binary log. */
export interface Entry {
  readonly index: number;
  readonly end: Position;
  readonly kind: WriteKind | 'own';
  readonly loggedAtMs: number;
  /** When SELECT shows it. */
  readonly visibleAtMs: number;
  isVisible: boolean;
  readonly rows: TableRow[];
}

const ENTRIES_PER_FILE = 8;
const BYTES = 100;

/** The binary log: transactions in commit order, each to be seen by SELECT a little later, in the same order. */
export class ServerLog {
  readonly entries: Entry[] = [];
  isReadable = true;
  /** What lies before it is not there any more. */
  firstIndex = 0;
  readonly #loop: EventLoop;
  /** Told of each new entry. */
  readonly listeners = new Set<() => void>();

  constructor(loop: EventLoop) {
    this.#loop = loop;
  }

  /** `onVisible` is called when SELECT begins to show it. */
  append(kind: Entry['kind'], visibleAfterMs: number, onVisible: () => void): Entry {
    const { nowMs } = this.#loop;
    const index = this.entries.length;
    const entry: Entry = {
      ...{ index, kind },
      end: positionBehind(index),
      loggedAtMs: nowMs,
      visibleAtMs: Math.max(nowMs + visibleAfterMs, this.entries.at(-1)?.visibleAtMs ?? 0),
      isVisible: false,
      rows: [],
    };
    this.entries.push(entry);
    this.#loop.at(entry.visibleAtMs, () => {
      entry.isVisible = true;
      onVisible();
    });
    for (const tell of this.listeners) tell();
    return entry;
  }

  purge(): void {
    this.firstIndex = this.entries.length;
  }

  /** Index of the first entry that ends behind the position. */
  behind({ file, offset }: Position): number {
    return (Number(file.slice(file.lastIndexOf('.') + 1)) - 1) * ENTRIES_PER_FILE + (offset - START) / BYTES;
  }

  head(): Checkpoint {
    const last = this.entries.at(-1);
    return {
      ...{ position: last?.end ?? positionBehind(-1), gtidSet: null },
      ...{ lastBegin: last === undefined ? null : { file: last.end.file, offset: beginOffset(last.index) } },
      lastGtid: null,
      lastCommitMicros: last === undefined ? null : last.loggedAtMs * 1000,
    };
  }
}

const START = 4;

function positionBehind(index: number): Position {
  if (index < 0) return { file: fileName(0), offset: START };
  return { file: fileName(Math.floor(index / ENTRIES_PER_FILE)), offset: beginOffset(index) + BYTES };
}

function beginOffset(index: number): number {
  return START + (index % ENTRIES_PER_FILE) * BYTES;
}

function fileName(number: number): string {
  return `binlog.${String(number + 1).padStart(6, '0')}`;
}

/** What a later stream knows the transaction by. */
export function landmarkOf({ index, end, loggedAtMs }: Entry) {
  return { end, beginOffset: beginOffset(index), gtid: null, commitMicros: loggedAtMs * 1000 };
}
