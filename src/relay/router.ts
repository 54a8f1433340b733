import type { AckWindow } from '../delivery/ack-window.ts';
import type { BufferPool } from '../delivery/buffer-pool.ts';
import type { Lane } from '../delivery/lane.ts';
import { scopeKeyText } from '../delivery/row-key.ts';
import { TopicLanes } from '../delivery/topic-lanes.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { type Checkpoint, comparePositions, formatGtid, formatPosition, type Position } from '../model/position.ts';
import { Form, type OutboxRow, type RowCursor } from '../model/row.ts';
import { beginOf, type Landmark, type Transaction, type TransactionGroup } from '../model/source.ts';
import { count, type RelayStats } from '../model/stats.ts';
import type { Flusher } from './flusher.ts';
import type { LaneSender } from './lane-sender.ts';
import type { Parking } from './parking.ts';
import type { PayloadCheck } from './payload-check.ts';
import { idOf, type RowCompletion, takeRun } from './row-completion.ts';
import type { RowVerdicts } from './row-verdicts.ts';
import type { Topics } from './topics.ts';

/** A topic that has grown is waited for so long until its lanes have drained, at most; later it is tried again. */
const DRAIN_MS = 2_000;
const DRAIN_POLL_MS = 5;

export interface RouterDeps {
  readonly window: AckWindow;
  readonly pool: BufferPool;
  readonly topics: Topics;
  readonly parking: Parking;
  readonly sender: LaneSender;
  readonly flusher: Flusher;
  readonly verdicts: RowVerdicts;
  readonly completion: RowCompletion;
  readonly stats: RelayStats;
  readonly payloads: PayloadCheck;
  readonly clock: Clock;
  readonly log: Log;
  /** By outbox: true where rows are kept as they are. */
  readonly keeps: readonly boolean[];
  readonly from: Checkpoint;
  /** What lies before it may have been sent already: such rows are looked up in their table. */
  readonly high: Position;
}

/**
 * Puts the rows of committed transactions into the lanes of their topic-partitions, in binlog order, but for those that
 * must wait: they are held, or left in their table. Waits when the pool has no buffer or too much is acknowledged and
 * not flushed; while it waits nothing is read.
 */
export class Router {
  readonly #deps: RouterDeps;
  readonly #touched = new Set<Lane>();
  /** Behind the last transaction that was routed whole. */
  #position: Position;
  /** That transaction; null: that of where it began. */
  #last: Landmark | null = null;
  #waiting: { readonly position: Position; readonly resolve: () => void }[] = [];
  /** Behind the transaction of which rows have gone into lanes, and not all; null: there is none. */
  #inside: Position | null = null;

  constructor(deps: RouterDeps) {
    this.#deps = deps;
    this.#position = deps.from.position;
  }

  /** Where the next stream begins: behind the last transaction that was routed whole. */
  get routedThrough(): Checkpoint {
    const position = this.#position;
    if (this.#last === null) return { ...this.#deps.from, position };
    const { gtid, commitMicros } = this.#last;
    const lastGtid = gtid === null ? null : formatGtid(gtid);
    return { position, gtidSet: null, lastBegin: beginOf(this.#last), lastGtid, lastCommitMicros: commitMicros };
  }

  /** Rows of a transaction have gone into lanes, and not all of it. */
  get isInside(): boolean {
    return this.#inside !== null;
  }

  /** What may have been sent lies before. */
  get reachesTo(): Position {
    return this.#inside ?? this.#position;
  }

  /**
   * True once everything at or before `position` is routed; false when that takes too long, `signal` is aborted, or
   * nothing is read any more.
   */
  async hasRouted(position: Position, withinMs: number, signal: AbortSignal): Promise<boolean> {
    const isRouted = (): boolean => comparePositions(this.#position, position) >= 0;
    if (isRouted()) return true;
    const over = new AbortController();
    this.#waiting.push({ position, resolve: () => over.abort() });
    await pause(this.#deps.clock, withinMs, AbortSignal.any([over.signal, signal]));
    return isRouted();
  }

  /** Nothing is read for now: who waits for it waits in vain. */
  noLongerFed(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** Routes a group; comes back early, between rows, when `signal` is aborted. */
  async route(group: TransactionGroup, signal: AbortSignal): Promise<void> {
    const { window, flusher } = this.#deps;
    for (const transaction of group.transactions) {
      if (!(await this.#routeTransaction(transaction, signal))) return;
    }
    const isWorthSaving = window.reached(group);
    this.#reached(group.reached, group.last ?? this.#last);
    this.#kickTouched();
    if (isWorthSaving) flusher.wake();
    await this.#caughtUp(signal);
  }

  #reached(reached: Position, last: Landmark | null): void {
    this.#position = reached;
    this.#last = last;
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ position, resolve }) => {
      const isThere = comparePositions(reached, position) >= 0;
      if (isThere) resolve();
      return !isThere;
    });
  }

  async #routeTransaction(transaction: Transaction, signal: AbortSignal): Promise<boolean> {
    const { window } = this.#deps;
    const number = window.open(transaction);
    this.#inside = transaction.end;
    const { pieces } = transaction;
    if (transaction.undecodable !== null) {
      this.#leaveToTheSweep(transaction, transaction.undecodable);
    } else if (pieces === null) {
      if (!(await this.#routeRows(transaction, transaction.rows(), number, signal))) return false;
    } else {
      for await (const rows of pieces.call(transaction, signal)) {
        if (!(await this.#routeRows(transaction, rows, number, signal))) return false;
        this.#kickTouched();
        await this.#caughtUp(signal);
      }
    }
    this.#inside = null;
    window.routed(number);
    const { stats, clock } = this.#deps;
    stats.transactions++;
    stats.lastRouted = { atMs: clock.nowMs(), commitMicros: transaction.commitMicros };
    // Nothing of it may be on its way: the checkpoint moves over it nevertheless.
    if (window.isSettled(number)) this.#deps.flusher.wake();
    this.#reached(transaction.end, transaction);
    return true;
  }

  /** Its rows are somewhere in the tables; what comes behind it must not pass them. */
  #leaveToTheSweep(transaction: Transaction, fault: Fault): void {
    const { parking, log, keeps } = this.#deps;
    if (keeps.includes(true)) throw new RelayError({ ...fault, disposition: 'halt' });
    const { code, detail } = fault;
    count(this.#deps.stats.undecodable, code);
    log.warn('transaction-left-to-sweep', { position: formatPosition(transaction.end), code, detail });
    parking.park({ kind: 'everything' }, { reason: code, dueInMs: 0 });
  }

  /** `isRead`: its rows were read in their table just now. */
  async #routeRows(
    transaction: Transaction,
    cursor: RowCursor,
    number: number,
    signal: AbortSignal,
    isRead = false,
  ): Promise<boolean> {
    const { topics, parking, keeps } = this.#deps;
    const commitMs = Math.floor(transaction.commitMicros / 1000);
    const mayBeSent = !isRead && comparePositions(transaction.end, this.#deps.high) <= 0;
    const { row } = cursor;
    let more = cursor.next();
    while (more) {
      if (!row.isComplete || (mayBeSent && !keeps[row.outbox])) {
        if (parking.leavesAll(row.outbox)) {
          more = cursor.next();
          continue;
        }
        const run = takeRun(cursor, mayBeSent);
        this.#kickTouched();
        const found = await this.#deps.completion.read(run, commitMs, signal);
        if (found === null || !(await this.#routeRows(transaction, found, number, signal, true))) return false;
        more = run.more;
        continue;
      }
      const topic = topics.find(row.topic) ?? (await this.#newTopic(row, number, signal));
      if (topic === null) {
        if (signal.aborted) return false;
      } else {
        if (topics.grown(topic) !== null) await this.#adopt(topic, signal);
        const timestampMs = row.createdAtMs >= 0 ? row.createdAtMs : commitMs;
        const lane = topic.laneOf(row);
        const isPlaced = this.#placeNow(lane, row, number, timestampMs);
        if (!isPlaced && !(await this.#place(lane, row, number, timestampMs, signal))) return false;
      }
      more = cursor.next();
    }
    return true;
  }

  /** Where a row goes, when that can be said and done at once; false: `place` is to be asked. No promise a row. */
  #placeNow(lane: Lane, row: OutboxRow, number: number, timestampMs: number): boolean {
    const { window, parking, payloads } = this.#deps;
    const what = parking.decide(row, lane.topic, lane);
    if (what !== 'send') return what === 'leave';
    try {
      payloads.check(row);
      if (!lane.append(row, number, timestampMs)) return false;
    } catch (error) {
      if (isRowFault(error)) return false;
      throw error;
    }
    window.add(number);
    this.#touched.add(lane);
    return true;
  }

  /** Waits for room. False when `signal` was aborted. */
  async #place(lane: Lane, row: OutboxRow, number: number, timestampMs: number, signal: AbortSignal): Promise<boolean> {
    const { window, parking, payloads } = this.#deps;
    try {
      for (;;) {
        // Decided anew after each wait: its scope may have been parked meanwhile.
        const what = parking.decide(row, lane.topic, lane);
        if (what === 'leave') return true;
        payloads.check(row);
        if (what === 'hold') {
          if (parking.hold(lane, row, number, timestampMs)) window.add(number);
          return true;
        }
        if (lane.append(row, number, timestampMs)) break;
        if (signal.aborted) return false;
        this.#kickTouched();
        await this.#roomOrStop(signal);
      }
    } catch (error) {
      if (!isRowFault(error)) throw error;
      await this.#fails(row, lane.topic, lane.partition, number, error.fault);
      return !signal.aborted;
    }
    window.add(number);
    this.#touched.add(lane);
    return true;
  }

  async #caughtUp(signal: AbortSignal): Promise<void> {
    const { flusher } = this.#deps;
    while (flusher.isBehind && !signal.aborted) await flusher.flushed();
  }

  #kickTouched(): void {
    for (const lane of this.#touched) this.#deps.sender.kick(lane);
    this.#touched.clear();
  }

  async #roomOrStop(signal: AbortSignal): Promise<void> {
    const { stats, clock } = this.#deps;
    const beganMs = (stats.poolWaitsSinceMs = clock.nowMs());
    stats.poolWaits++;
    const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>();
    const onAbort = (): void => stop(undefined);
    signal.addEventListener('abort', onAbort, { once: true });
    await Promise.race([this.#deps.pool.returned(), stopped]);
    signal.removeEventListener('abort', onAbort);
    stats.poolWaitedMs += clock.nowMs() - beganMs;
    stats.poolWaitsSinceMs = null;
  }

  /** Null: the row is not sent now; what is to be done about it is done. */
  async #newTopic(row: OutboxRow, number: number, signal: AbortSignal): Promise<TopicLanes | null> {
    const { topics, parking, keeps } = this.#deps;
    const name = topicName(row);
    if (name === null) {
      await this.#fails(row, '', -1, number, NO_TOPIC);
      return null;
    }
    if (!parking.isHolding && parking.decide(row, name, null) === 'leave') return null;
    this.#kickTouched();
    let opened = await topics.open(name, signal);
    // What is kept can be left to nobody: it is waited for as long as it may pass.
    while (keeps[row.outbox] && opened !== null && !(opened instanceof TopicLanes)) {
      if (opened.disposition !== 'retry' && opened.disposition !== 'renew')
        throw new RelayError({ ...opened, disposition: 'halt' });
      opened = await topics.open(name, signal);
    }
    if (opened === null || opened instanceof TopicLanes) return opened;
    if (opened.code === 'KAFKA_INVALID_TOPIC_EXCEPTION') await this.#fails(row, name, -1, number, opened);
    else parking.park({ kind: 'topic', topic: name }, { reason: opened.code });
    return null;
  }

  /** A row that cannot become a record. */
  async #fails(row: OutboxRow, topic: string, partition: number, number: number, fault: Fault): Promise<void> {
    const { window, flusher, verdicts, parking, keeps } = this.#deps;
    if (keeps[row.outbox]) throw new RelayError({ ...fault, disposition: 'halt' });
    const id = idOf(row);
    const { failure, park, reason } = await verdicts.ofRow(row, topic, id, 0, fault);
    if (park !== null) {
      const scope = { kind: 'pair', topic, partition, key: Buffer.from(scopeKeyText(row), 'latin1') } as const;
      parking.park(scope, {
        reason,
        row: { outbox: row.outbox, id },
        ...(park === 'until somebody acts' ? { dueInMs: null } : {}),
      });
    }
    const isFailed = failure.as === 'failed';
    if (isFailed) window.add(number);
    flusher.fail(failure, isFailed ? number : null);
  }

  /** The topic has more partitions now: they are used when nothing waits under the old ones (S13). */
  async #adopt(topic: TopicLanes, signal: AbortSignal): Promise<void> {
    const { topics, parking, clock } = this.#deps;
    this.#kickTouched();
    const deadlineMs = clock.nowMs() + DRAIN_MS;
    while (!signal.aborted && clock.nowMs() < deadlineMs && parking.mayGrow(topic.topic)) {
      const partitions = topics.grown(topic);
      if (partitions === null) return;
      if (topic.isEmpty) {
        topics.adopt(topic, partitions);
        return;
      }
      await pause(clock, DRAIN_POLL_MS, signal);
    }
    topics.postpone(topic);
  }
}

function isRowFault(error: unknown): error is RelayError {
  return error instanceof RelayError && error.fault.disposition === 'reject';
}

export const NO_TOPIC: Fault = { code: 'ROW_NO_TOPIC', disposition: 'reject', detail: 'the row names no topic' };

export function topicName({ topic }: OutboxRow): string | null {
  if (topic.form === Form.Null || topic.start === topic.end) return null;
  return topic.buffer.toString('utf8', topic.start, topic.end);
}
