import type { RelayStatus } from '../http/status-view.ts';
import { bytesText, countText } from './words.ts';

export const PARTS = ['mysql', 'tail', 'sweep', 'lanes', 'kafka', 'marks'] as const;
export type PartId = (typeof PARTS)[number];

/** `off`: not this relay's to do now. */
export type Tone = 'flows' | 'idle' | 'stuck' | 'off';

export interface Part {
  readonly id: PartId;
  readonly title: string;
  readonly number: string;
  readonly unit: string;
  readonly tone: Tone;
  readonly stuck: Stuck | null;
}

export interface Stuck {
  readonly forMs: number;
  readonly cause: string;
  /** What follows from it, and what helps. */
  readonly effect: string;
  readonly command: string;
}

type StuckPart = RelayStatus['stuck'][number];

/** The relay as a picture: each part with its one number, and what does not move. */
export function partsOf(status: RelayStatus): readonly Part[] {
  const { state, term, outboxes, purge, rate, rows } = status;
  const stuck = new Map(status.stuck.map((each) => [placeOf(each, status), stuckOf(each, status)]));
  if (state === 'UNKNOWN') stuck.set('mysql', silent(status));
  const pending = outboxes?.reduce((sum, { waiting }) => sum + (waiting?.pendingRows ?? 0), 0) ?? null;
  // A rate is of the last seconds: whose term has just ended moves nothing any more.
  const isMoving = term !== null && rate.nowRowsPerSecond > 0;
  const part = (id: PartId, title: string, number: string, unit: string, isOff: boolean): Part => {
    const cause = stuck.get(id) ?? null;
    const tone = cause !== null ? 'stuck' : isOff || state === 'STOPPED' ? 'off' : isMoving ? 'flows' : 'idle';
    return { id, title, number, unit, tone, stuck: cause };
  };
  const isOut = term === null;
  const behind = purge?.behindBytes ?? null;
  return [
    part('mysql', 'MySQL', pending === null ? '?' : countText(pending), 'rows pending', false),
    isOut || term.source === 'sweep'
      ? part('tail', 'Tail', '–', isOut ? 'not reading' : 'binlog not read', true)
      : part(
          'tail',
          'Tail',
          behind === null ? countText(rows.byTail) : bytesText(behind),
          behind === null ? 'rows by it so far' : 'of binlog behind',
          false,
        ),
    part('sweep', 'Sweep', isOut ? '–' : countText(rows.bySweep), isOut ? 'not looking' : 'rows by it so far', isOut),
    part(
      'lanes',
      'Lanes',
      isOut ? '–' : countText(term.lanes.sending),
      isOut ? 'none' : `of ${countText(term.lanes.inUse)} sending`,
      isOut,
    ),
    part('kafka', 'Kafka', isOut ? '–' : countText(rate.nowRowsPerSecond), isOut ? 'nothing sent' : 'rows/s', isOut),
    part(
      'marks',
      'Marks',
      isOut ? '–' : countText(term.unflushedRows),
      isOut ? 'nothing marked' : 'sent rows to mark as published',
      isOut,
    ),
  ];
}

/** Where in the picture a part is. What keeps a term from starting is where its fault comes from. */
function placeOf({ part, detail }: StuckPart, { fault }: RelayStatus): PartId {
  switch (part) {
    case 'tail':
    case 'sweep':
    case 'kafka':
      return part;
    case 'lane':
      return 'lanes';
    case 'flush':
      return 'marks';
    default: {
      const code = detail ?? fault ?? '';
      return code.startsWith('KAFKA_') ? 'kafka' : code.startsWith('BINLOG_') ? 'tail' : 'mysql';
    }
  }
}

const EFFECTS: Readonly<Record<string, string>> = {
  start: 'The relay cannot begin to work. Rows wait in MySQL; none is lost.',
  tail: 'New rows are not read from the binlog. They wait in MySQL; none is lost.',
  sweep: 'Rows that are due are not fetched from their table. None is lost.',
  lane: 'Rows of these partitions wait; the others go on.',
  kafka: 'Kafka acknowledges nothing. Rows wait in MySQL; none is lost.',
  flush: 'Rows are in Kafka and cannot be marked as published. A restart would send them again.',
};

function stuckOf({ part, detail, stuckMs }: StuckPart, status: RelayStatus): Stuck {
  const { lastError } = status;
  const isRecent = lastError !== null && lastError.agoMs <= stuckMs + 60_000;
  const known = [detail, status.fault, isRecent ? lastError.code : null].filter((each) => each !== null);
  const causes = [...new Set(known)];
  return {
    forMs: stuckMs,
    cause: causes.length > 0 ? causes.join(', ') : part === 'kafka' ? 'no acknowledgement' : 'no progress',
    effect: EFFECTS[part] ?? 'Rows wait in MySQL; none is lost.',
    command: 'cdc-relay check',
  };
}

function silent({ stateForMs, lastError, fault }: RelayStatus): Stuck {
  return {
    forMs: stateForMs,
    cause: fault ?? lastError?.code ?? 'no answer',
    effect: 'The database does not answer: what waits there is not known. No row is lost.',
    command: 'cdc-relay check',
  };
}
