import { backOffMs } from '../delivery/back-off.ts';
import { partsOfRecord, partsOfRow, type RecordParts } from '../encoding/dead-letter.ts';
import { partitionOf } from '../encoding/murmur2.ts';
import { type Clock, pause } from '../model/clock.ts';
import { fault, type Fault, type FaultCode, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { ProducerIdentity, Publisher, SealedBatch } from '../model/publisher.ts';
import { Form, type OutboxRow } from '../model/row.ts';
import { shownId } from '../model/row-ids.ts';
import type { Leader } from '../model/store.ts';
import { type Letter, letterHeaders, omitted, sealLetter, type Version, versionsOf } from './letter.ts';

/** A letter that is not in its topic by then is given up: its row stays pending and comes again. */
const PATIENCE_MS = 5_000;
/** That the topic cannot be used is believed for so long: the rows behind in the lane wait while it is asked for. */
const UNUSABLE_MS = 2_000;
const BACK_OFF = { baseMs: 50, capMs: 1_000 };
const LEADERSHIP_POLL_MS = 20;
const SEQUENCES = 2 ** 31;

const TOO_LARGE: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'KAFKA_MESSAGE_TOO_LARGE',
  'KAFKA_RECORD_LIST_TOO_LARGE',
  'KAFKA_REQUEST_TOO_LARGE',
]);

export interface DeadLettersDeps {
  readonly publisher: Publisher;
  readonly clock: Clock;
  readonly log: Log;
  readonly leader: Leader;
  readonly topic: string;
  /** By outbox: `schema.table`. */
  readonly outboxes: readonly string[];
}

/** One partition of the dead-letter topic. */
interface Lane {
  readonly partition: number;
  /** Null: there is none, or what became of a letter under its next number is not known. */
  producer: ProducerIdentity | null;
  sequence: number;
  /** Resolves when the letters before are done with. */
  last: Promise<unknown>;
}

interface Sending {
  readonly letter: Letter;
  readonly versions: readonly Version[];
  /** Since the epoch. */
  readonly failedMs: number;
  /** By the clock. */
  readonly untilMs: number;
}

/**
 * Sends failed rows to the dead-letter topic, a record in a batch of its own each: key, value and headers byte for byte
 * as they would have been, and headers `dlq-…` that say what happened. That is a part of settling the row: while its
 * letter is not there, it has not failed. A letter is there twice only after a fault.
 */
export class DeadLetters {
  readonly #deps: DeadLettersDeps;
  readonly #lanes = new Map<number, Lane>();
  #unusable: { readonly fault: Fault; readonly untilMs: number } | null = null;

  constructor(deps: DeadLettersDeps) {
    this.#deps = deps;
  }

  /**
   * The record `buffer[start, end)` of a batch, its length in front included; it is copied before this returns. Resolves
   * within some seconds: null when the letter is in the topic, else why it is not.
   */
  sendRecord(buffer: Buffer, start: number, end: number, letter: Letter): Promise<Fault | null> {
    const record = Buffer.from(buffer.subarray(start, end));
    return this.#send(partsOfRecord(record, 0, record.length), true, letter);
  }

  /** The same for a row that never became a record, even one that cannot become one. */
  sendRow(row: OutboxRow, letter: Letter): Promise<Fault | null> {
    const { parts, isWhole } = partsOfRow(row);
    const { form, buffer, start, end } = row.topic;
    const named = form === Form.Null || start === end ? null : buffer.toString('utf8', start, end);
    return this.#send(parts, isWhole, { ...letter, topic: letter.topic ?? named });
  }

  async #send(parts: RecordParts, isWhole: boolean, letter: Letter): Promise<Fault | null> {
    const { publisher, clock, topic, outboxes } = this.#deps;
    if (this.#unusable !== null && clock.nowMs() < this.#unusable.untilMs) return this.#unusable.fault;
    const failedMs = Date.now();
    const versions = versionsOf(parts, isWhole, letterHeaders(letter, outboxes[letter.outbox], failedMs));
    const sending: Sending = { letter, versions, failedMs, untilMs: clock.nowMs() + PATIENCE_MS };
    try {
      const state = await this.#within(sending, publisher.topic(topic));
      if (state.as === 'unusable') {
        this.#unusable = { fault: state.fault, untilMs: clock.nowMs() + UNUSABLE_MS };
        return state.fault;
      }
      const by = parts.key ?? Buffer.from(String(letter.id));
      const lane = this.#lane(partitionOf(by, 0, by.length, state.partitions));
      // One at a time, each within its own time: the ones before were begun before, and end before.
      const turn = lane.last.then(() => this.#deliver(lane, sending));
      lane.last = turn.catch(() => undefined);
      await turn;
      return null;
    } catch (error) {
      if (error instanceof RelayError) return error.fault;
      throw error;
    }
  }

  #lane(partition: number): Lane {
    let lane = this.#lanes.get(partition);
    if (lane === undefined) {
      lane = { partition, producer: null, sequence: 0, last: Promise.resolve() };
      this.#lanes.set(partition, lane);
    }
    return lane;
  }

  /** Rejects with a `RelayError` when the letter is not in the topic, as far as we know. */
  async #deliver(lane: Lane, sending: Sending): Promise<void> {
    try {
      for (const version of sending.versions) {
        const tooLarge = await this.#sendVersion(lane, sending, version);
        if (tooLarge === null) {
          this.#delivered(sending, version);
          return;
        }
        if (version === sending.versions.at(-1)) throw tooLarge;
      }
    } catch (error) {
      // Its sequence number may be taken: the next letter under it could be dropped as a duplicate.
      lane.producer = null;
      throw error;
    }
  }

  /** Null: it is in the topic. Else the refusal that a shorter one may not meet. */
  async #sendVersion(lane: Lane, sending: Sending, version: Version): Promise<RelayError | null> {
    const { publisher, clock, leader, topic } = this.#deps;
    let sealed: SealedBatch | null = null;
    let last: RelayError | null = null;
    for (let tries = 1; ; tries++) {
      if (lane.producer === null) {
        lane.producer = await this.#newProducer(sending);
        lane.sequence = 0;
        sealed = null;
      }
      // The same bytes again as long as the identity is the same: the broker knows a duplicate by its number.
      sealed ??= {
        topic,
        partition: lane.partition,
        bytes: sealLetter(version, lane.producer, lane.sequence, sending.failedMs),
        records: 1,
      };
      await this.#maySend(sending, last);
      const outcome = await this.#within(sending, publisher.send(sealed));
      if (outcome.as === 'acked') {
        lane.sequence = (lane.sequence + 1) % SEQUENCES;
        return null;
      }
      const { fault: found } = outcome;
      last = new RelayError(found);
      if (outcome.as === 'refused') {
        if (TOO_LARGE.has(found.code)) return last;
        if (found.disposition !== 'retry' && found.disposition !== 'renew') throw last;
      }
      if (found.disposition === 'renew') lane.producer = null;
      await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), leader.lost);
    }
  }

  #delivered({ letter, versions }: Sending, version: Version): void {
    const { log, outboxes } = this.#deps;
    if (version === versions[0]) return;
    const missing = omitted(version);
    log.warn('dead-letter-cut', { table: outboxes[letter.outbox], rowId: shownId(letter.id), omitted: missing });
  }

  async #maySend({ untilMs }: Sending, last: RelayError | null): Promise<void> {
    const { clock, leader, topic } = this.#deps;
    for (;;) {
      if (leader.lost.aborted) throw NOT_LEADING;
      if (clock.nowMs() >= untilMs) throw last ?? late(topic);
      if (leader.maySend()) return;
      await pause(clock, LEADERSHIP_POLL_MS, leader.lost);
    }
  }

  async #newProducer(sending: Sending): Promise<ProducerIdentity> {
    const { publisher, clock, leader } = this.#deps;
    let last: RelayError | null = null;
    for (let tries = 1; ; tries++) {
      await this.#maySend(sending, last);
      try {
        return await this.#within(sending, publisher.newProducer());
      } catch (error) {
        if (!(error instanceof RelayError) || error.fault.disposition === 'halt') throw error;
        last = error;
        await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), leader.lost);
      }
    }
  }

  /** `work`, or a rejection when the letter's time is over. The work itself goes on, and has a bound of its own. */
  #within<T>({ untilMs }: Sending, work: Promise<T>): Promise<T> {
    const { clock, topic } = this.#deps;
    return new Promise((resolve, reject) => {
      const cancel = clock.after(Math.max(1, untilMs - clock.nowMs()), () => reject(late(topic)));
      work.finally(cancel).then(resolve, reject);
    });
  }
}

function late(topic: string): RelayError {
  return fault('KAFKA_TIMEOUT', 'retry', `${topic}: the dead letter was not taken in time`);
}

const NOT_LEADING = fault('LEADERSHIP_LOST', 'retry', 'no letter is sent by who may not lead');
