import type { ParkedEntry } from '../../../src/model/parked.ts';
import type { Broker, Sending, SentRow } from './broker.ts';
import type { SentBatch } from './decode-batch.ts';
import { DEAD_LETTERS, type Plan, type PlannedFault } from './plan.ts';
import type { Server } from './server.ts';
import { Replays } from './replays.ts';
import { headerId, partitionOfRow, scopeKeyOf, type TableRow } from './table.ts';

/** A promise that was broken. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

const SETTLED: ReadonlySet<TableRow['status']> = new Set(['published', 'failed', 'discarded']);
const TWO_LEADERS: ReadonlySet<PlannedFault['kind']> = new Set(['freeze', 'lock', 'mysql']);
const SLOWING: ReadonlySet<PlannedFault['kind']> = new Set(['mysql', 'slow', 'partition', 'kafka']);

/** Attempts of its own that a row gets before it fails. */
export const MAX_ATTEMPTS = 4;

/**
 * Judges what the world has seen, step by step.
 * - I1 no committed row is lost: published in the table only when in its topic, failed only when it was refused
 * - I2 first deliveries of a topic and key are in commit order; among rows of the sweep, those that wait go by id
 * - I3 nothing is delivered twice unless something broke
 * - I4 nothing is delivered that was not committed
 * - a relay that is paused sends and writes nothing
 * - a relay that rests, or was told to stop, leaves no claim, and nothing delivered that its table does not say (a stop
 *   is no fault but for rows that the application holds)
 * - a row has no more attempts than refusals, fails with all of them, and with one dead letter each time
 * - what somebody has discarded is not sent; what a job sends again is judged by `Replays`
 * - I5 a saved checkpoint passes no row that is not settled and that no written scope covers
 */
export class Watch {
  readonly #server: Server;
  readonly #broker: Broker;
  readonly #replays: Replays;
  readonly #deliveries = new Map<TableRow, number>();
  /** Rows in the order of their first deliveries. */
  readonly order: TableRow[] = [];
  /** Rows that the sweep has claimed at some time. */
  readonly swept = new Set<TableRow>();
  /** Scopes that were ever written, by name. */
  readonly everParked = new Set<string>();
  readonly #hasLetters: boolean;
  readonly #letters = new Map<TableRow, number>();
  /** As their table says now. */
  readonly #failed = new Set<TableRow>();
  #mayRepeat = false;
  /** A relay that leads no longer may have been sending. */
  #mayMix = false;
  #broken: Broken | null = null;

  /** Nothing waits for a row that has failed. */
  /** MySQL or Kafka do not answer, or not soon. */
  readonly #mayStopSlowly: boolean;
  /** Batches may come twice, and their sender does not know. */
  readonly #mayResend: boolean;
  readonly #releases: boolean;
  readonly #trace: (line: () => string) => void;

  constructor(server: Server, broker: Broker, plan: Plan, trace: (line: () => string) => void) {
    this.#mayStopSlowly = plan.faults.some(({ kind }) => SLOWING.has(kind));
    this.#mayResend = plan.faults.some((each) => each.kind === 'partition' || TWO_LEADERS.has(each.kind));
    this.#hasLetters = plan.hasDeadLetters;
    this.#releases = plan.onExhausted === 'release';
    this.#replays = new Replays(server);
    this.#server = server;
    this.#broker = broker;
    this.#trace = trace;
    server.onCommitted = (what) => this.#afterCommit(what);
    server.onPausedWork = (what) => this.pausedWork(what);
    broker.onAppend = (sending) => this.#appended(sending);
  }

  /** Throws what was broken first. */
  check(): void {
    if (this.#broken !== null) throw this.#broken;
  }

  /** Something happened after which rows may be sent again. */
  faulted(): void {
    this.#mayRepeat = true;
  }

  /** Another relay may be sending at the same time. */
  mayMix(): void {
    this.#mayMix = true;
    this.faulted();
  }

  /** A process that was told to stop had to be killed. */
  endedHard(name: string): void {
    if (!this.#mayStopSlowly) this.#break(`${name} did not stop in time`);
    this.faulted();
  }

  /** A relay rests, or has stopped: nothing is claimed, and the table says of every row whether it was delivered. */
  cameToRest(name: string): void {
    if (this.#mayRepeat) return;
    for (const row of this.#server.rows) {
      const isUntold = this.#server.retire !== 'keep' && row.status === 'pending' && this.deliveries(row) > 0;
      if (isUntold || row.status === 'processing') this.#break(`${name} rests, and r${row.number} is ${row.status}`);
    }
  }

  /** Somebody acts on a failed row. */
  actedOn(row: TableRow): void {
    this.#failed.delete(row);
  }

  /** A relay tells people what is not so. */
  untrue(what: string): void {
    this.#break(what);
  }

  pausedWork(what: string): void {
    this.#break(`paused, and ${what}`);
  }

  deliveries(row: TableRow): number {
    return this.#deliveries.get(row) ?? 0;
  }

  /** A batch leaves a relay. */
  sent({ topic, partition, batch }: { topic: string; partition: number; batch: SentBatch }): Sending {
    const rows = batch.records.flatMap((record): SentRow[] => {
      const id = record.headers.get('id') ?? '';
      const row = this.#server.rows[Number(id.slice(1))] as TableRow | undefined;
      if (row === undefined || headerId(row) !== id) {
        this.#break(`I4 a record '${id}' that is no row's`);
        return [];
      }
      const isRight = topic === row.topic || (topic === DEAD_LETTERS && record.headers.get('dlq-topic') === row.topic);
      if (record.key !== row.key || record.value !== row.value || !isRight) {
        this.#break(`I1 r${row.number} sent as something else`);
      }
      if (row.status === 'discarded') this.#break(`r${row.number} is sent, and somebody has discarded it`);
      const job = record.headers.get('cdc-relay-replay') ?? null;
      return [{ row, isSwept: row.status === 'processing', job }];
    });
    this.#trace(() => `sent to ${topic}/${partition}: ${namesOf(rows)} as ${batch.producerId}:${batch.firstSequence}`);
    return { topic, partition, batch, rows };
  }

  #appended({ topic, partition, rows }: Sending): void {
    this.#trace(() => `appended to ${topic}/${partition}: ${namesOf(rows)}`);
    if (topic === DEAD_LETTERS) {
      for (const { row } of rows) this.#letterCame(row);
      return;
    }
    for (const { row, isSwept, job } of rows) {
      const before = this.deliveries(row);
      if (job !== null) {
        this.#breakIf(this.#replays.appended(row, job, before > 0, this.#mayMix));
        continue;
      }
      if (before === 0) this.#replays.live(row);
      this.#deliveries.set(row, before + 1);
      if (before === 0) this.order.push(row);
      if (before > 0) {
        if (!this.#mayRepeat) this.#break(`I3 r${row.number} delivered twice without a fault`);
      } else if (row.key !== null) {
        if (row.isDelayed) this.#inOrderOfDueTimes(row);
        else this.#inOrder(row, isSwept);
      }
    }
  }

  #letterCame(row: TableRow): void {
    if (!isPoisoned(row)) this.#break(`a dead letter of r${row.number}, which has not failed`);
    this.#letters.set(row, (this.#letters.get(row) ?? 0) + 1);
  }

  /** One letter for each time: more only after a fault. */
  #noteFailed(row: TableRow): void {
    const isFailed = row.status === 'failed';
    if (isFailed && !this.#failed.has(row)) {
      row.timesFailed++;
      const letters = this.#letters.get(row) ?? 0;
      const isRight = letters === row.timesFailed || (this.#mayRepeat && letters > row.timesFailed);
      if (this.#hasLetters && !isRight) this.#break(`r${row.number} failed, and has ${letters} dead letters`);
    }
    if (isFailed) this.#failed.add(row);
    else this.#failed.delete(row);
  }

  /** As often as it is allowed to be; more often where its letter could not be sent. */
  #isTried({ attempts }: TableRow): boolean {
    return this.#hasLetters ? attempts >= MAX_ATTEMPTS : attempts === MAX_ATTEMPTS;
  }

  #inOrder(row: TableRow, isSwept: boolean): void {
    for (const earlier of this.#server.rows) {
      if (earlier.number >= row.number) return;
      if (earlier.topic !== row.topic || earlier.key !== row.key || earlier.isDelayed) continue;
      if (this.deliveries(earlier) > 0 || (this.#releases && mayBePassed(earlier))) continue;
      if (earlier.status === 'discarded') continue;
      if (isSwept && row.id < earlier.id) continue;
      this.#break(`I2 r${row.number} delivered before r${earlier.number}`);
    }
  }

  /** A delayed row that was due, and could be seen, before another was: unless that one has a lower id, it is first. */
  #inOrderOfDueTimes(row: TableRow): void {
    for (const other of this.#server.rows) {
      if (!other.isDelayed || other.topic !== row.topic || other.key !== row.key || other.id >= row.id) continue;
      if (this.deliveries(other) > 0 || mayBePassed(other) || other.status === 'discarded') continue;
      if (Math.max(other.availableAtMs, other.entry.visibleAtMs) >= row.availableAtMs) continue;
      this.#break(`I2 r${row.number} delivered before r${other.number}, which was due before it`);
    }
  }

  #afterCommit(what: string): void {
    this.#trace(() => `${what}: ${this.#stateOf()}`);
    for (const row of this.#server.rows) {
      const { status, number } = row;
      if (status === 'processing') this.swept.add(row);
      if (status === 'published' && this.deliveries(row) === 0) {
        this.#break(`I1 r${number} marked published, not in its topic`);
      }
      if (status === 'failed' && !isPoisoned(row)) this.#break(`I1 r${number} failed without a cause`);
      this.#noteFailed(row);
      const refusals = this.#broker.refusalsOf(row) - row.refusalsForgiven;
      if (row.attempts > refusals)
        this.#break(`r${number} has ${row.attempts} attempts and was refused ${refusals} times`);
      if (status === 'failed' && row.poison?.code === 'CORRUPT_MESSAGE' && !this.#isTried(row)) {
        this.#break(`r${number} failed with ${row.attempts} attempts`);
      }
    }
    for (const name of this.#server.parked.keys()) this.everParked.add(name);
    this.#breakIf(this.#replays.afterCommit(this.#mayRepeat && this.#mayResend));
    this.#checkpointHolds();
  }

  #checkpointHolds(): void {
    const { offsets, log } = this.#server;
    if (offsets === null) return;
    const through = log.behind(offsets.checkpoint.position);
    for (const row of this.#server.rows) {
      if (row.entry.index >= through) return;
      // Retried: it is due, and the sweep finds it without a scope.
      if (row.isDelayed || SETTLED.has(row.status) || row.timesFailed > 0) continue;
      // In its topic, and the application kept it from being marked: it is sent again at worst, and I3 tells whether.
      if (this.deliveries(row) > 0) continue;
      if (![...this.#server.parked.values()].some((entry) => this.#covers(entry, row))) {
        this.#break(`I5 the checkpoint passed r${row.number} (${row.status}), and no written scope covers it`);
      }
    }
  }

  #covers({ scope, partitions }: ParkedEntry, row: TableRow): boolean {
    if (scope.kind === 'everything') return true;
    if (scope.topic !== row.topic) return false;
    if (scope.kind === 'topic') return true;
    if (scope.kind === 'pair') return scope.key.equals(scopeKeyOf(row));
    const count = partitions > 0 ? partitions : this.#broker.topics.get(row.topic)!.partitions.length;
    return scope.partition === partitionOfRow(row, count);
  }

  #stateOf(): string {
    const rows = this.#server.rows.map(({ number, status }) => `r${number} ${status}`);
    const { offsets, log, parked } = this.#server;
    const through = offsets === null ? 'none' : log.behind(offsets.checkpoint.position);
    return `${rows.join(', ')}; checkpoint behind ${through}; parked: ${[...parked.keys()].join(', ')}`;
  }

  #breakIf(what: string | null): void {
    if (what !== null) this.#break(what);
  }

  #break(what: string): void {
    this.#broken ??= new Broken(what);
  }
}

function namesOf(rows: readonly SentRow[]): string {
  return rows
    .map(({ row, isSwept, job }) => `r${row.number}${isSwept ? ' (swept)' : job === null ? '' : ` (job ${job})`}`)
    .join(', ');
}

/** What comes behind it does not wait where failed rows release. */
function mayBePassed(row: TableRow): boolean {
  return row.timesFailed > 0 || isPoisoned(row);
}

/** It will fail: nothing waits for it. */
export function isPoisoned({ poison, isMended }: TableRow): boolean {
  return poison !== null && !isMended && (poison.times >= MAX_ATTEMPTS || poison.code === 'MESSAGE_TOO_LARGE');
}
