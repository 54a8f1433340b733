import type { AckWindow } from '../delivery/ack-window.ts';
import { backOffMs } from '../delivery/back-off.ts';
import type { BufferPool } from '../delivery/buffer-pool.ts';
import { Lane, type SpareBatches } from '../delivery/lane.ts';
import { TopicIndex, TopicLanes } from '../delivery/topic-lanes.ts';
import { type Clock, pause } from '../model/clock.ts';
import { fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Checkpoint } from '../model/position.ts';
import type { Publisher } from '../model/publisher.ts';
import { type Field, Form } from '../model/row.ts';
import type { RowCursor } from '../model/row.ts';
import type { Transaction, TransactionGroup } from '../model/source.ts';
import type { Flusher } from './flusher.ts';
import type { LaneSender } from './lane-sender.ts';
import { type RowCompletion, takeRun } from './row-completion.ts';

const TOPIC_BACK_OFF = { baseMs: 100, capMs: 5_000 };

export interface RouterDeps {
  readonly window: AckWindow;
  readonly pool: BufferPool;
  readonly spare: SpareBatches;
  readonly sender: LaneSender;
  readonly flusher: Flusher;
  readonly publisher: Publisher;
  readonly completion: RowCompletion;
  readonly clock: Clock;
  readonly log: Log;
  readonly batchRecords: number;
  readonly from: Checkpoint;
}

/**
 * Puts the rows of committed transactions into the lanes of their topic-partitions, in binlog order. Waits when the
 * pool has no buffer or too much is acknowledged and not flushed; while it waits nothing is read.
 */
export class Router {
  readonly #deps: RouterDeps;
  readonly #topics = new TopicIndex();
  readonly #touched = new Set<Lane>();
  #routedThrough: Checkpoint;
  /** Rows of a transaction have gone into lanes, and not all of it. */
  isInside = false;

  constructor(deps: RouterDeps) {
    this.#deps = deps;
    this.#routedThrough = deps.from;
  }

  /** Where the next stream begins: behind the last transaction that was routed whole. */
  get routedThrough(): Checkpoint {
    return this.#routedThrough;
  }

  /** Routes a group; comes back early, between rows, when `signal` is aborted. */
  async route(group: TransactionGroup, signal: AbortSignal): Promise<void> {
    const { window, flusher } = this.#deps;
    for (const transaction of group.transactions) {
      if (!(await this.#routeTransaction(transaction, signal))) return;
    }
    window.reached(group.reached, group.skipped, group.worthSaving);
    this.#routedThrough = { ...this.#routedThrough, position: group.reached };
    this.#kickTouched();
    if (group.worthSaving) flusher.wake();
    await this.#caughtUp(signal);
  }

  async #routeTransaction(transaction: Transaction, signal: AbortSignal): Promise<boolean> {
    const { window } = this.#deps;
    const number = window.open(transaction);
    this.isInside = true;
    const { pieces } = transaction;
    if (pieces === null) {
      if (!(await this.#routeRows(transaction, transaction.rows(), number, signal))) return false;
    } else {
      for await (const rows of pieces.call(transaction, signal)) {
        if (!(await this.#routeRows(transaction, rows, number, signal))) return false;
        this.#kickTouched();
        await this.#caughtUp(signal);
      }
    }
    this.isInside = false;
    window.routed(number);
    this.#routedThrough = {
      position: transaction.end,
      gtidSet: null,
      lastGtid: null,
      lastCommitMicros: transaction.commitMicros,
    };
    return true;
  }

  async #routeRows(transaction: Transaction, cursor: RowCursor, number: number, signal: AbortSignal): Promise<boolean> {
    const { window } = this.#deps;
    const commitMs = Math.floor(transaction.commitMicros / 1000);
    const { row } = cursor;
    let more = cursor.next();
    while (more) {
      if (!row.isComplete) {
        const run = takeRun(cursor);
        this.#kickTouched();
        const found = await this.#deps.completion.read(run, commitMs, signal);
        if (found === null || !(await this.#routeRows(transaction, found, number, signal))) return false;
        more = run.more;
        continue;
      }
      const topic = this.#topics.find(row.topic) ?? (await this.#newTopic(row.topic, signal));
      if (topic === null) return false;
      const lane = topic.laneOf(row);
      const timestampMs = row.createdAtMs >= 0 ? row.createdAtMs : commitMs;
      while (!lane.append(row, number, timestampMs)) {
        if (signal.aborted) return false;
        this.#kickTouched();
        await this.#roomOrStop(signal);
      }
      window.add(number);
      this.#touched.add(lane);
      more = cursor.next();
    }
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
    const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>();
    const onAbort = (): void => stop(undefined);
    signal.addEventListener('abort', onAbort, { once: true });
    await Promise.race([this.#deps.pool.returned(), stopped]);
    signal.removeEventListener('abort', onAbort);
  }

  async #newTopic(field: Field, signal: AbortSignal): Promise<TopicLanes | null> {
    const { publisher, clock, log, pool, spare, batchRecords } = this.#deps;
    if (field.form === Form.Null || field.start === field.end) {
      throw fault('ROW_NO_TOPIC', 'halt', 'an outbox row names no topic');
    }
    const name = field.buffer.toString('utf8', field.start, field.end);
    for (let tries = 1; ; tries++) {
      const state = await publisher.topic(name);
      if (signal.aborted) return null;
      if (state.as === 'known') {
        const lanes = new TopicLanes(
          name,
          state.partitions,
          (topic, partition) => new Lane(topic, partition, pool, spare, batchRecords),
        );
        this.#topics.add(lanes);
        log.info('topic-in-use', { topic: name, partitions: state.partitions });
        return lanes;
      }
      if (state.fault.disposition !== 'retry' && state.fault.disposition !== 'renew') throw new RelayError(state.fault);
      if (tries === 1) log.warn('topic-unavailable', { topic: name, code: state.fault.code });
      await pause(clock, backOffMs(TOPIC_BACK_OFF, tries, Math.random()), signal);
    }
  }
}
