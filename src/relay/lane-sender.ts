import { backOffMs } from '../delivery/back-off.ts';
import type { Batch } from '../delivery/batch.ts';
import type { Lane } from '../delivery/lane.ts';
import { compressRecords, sealBatch } from '../encoding/record-batch.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { ProducerIdentity, Publisher, SealedBatch } from '../model/publisher.ts';
import type { Compression } from '../model/settings.ts';
import type { Leader } from '../model/store.ts';

/** A lane that cannot deliver tries again after these; a leader election mostly takes less than a second. */
const BACK_OFF = { baseMs: 50, capMs: 2_000 };
/** How often a lane looks again whether it may send. */
const LEADERSHIP_POLL_MS = 20;
/** Sequence numbers are renewed long before they wrap. */
const LAST_SEQUENCE = 2 ** 31 - 1_000_000;

export interface LaneSenderDeps {
  readonly publisher: Publisher;
  readonly leader: Leader;
  readonly clock: Clock;
  readonly log: Log;
  readonly compression: Compression;
  /** The batch is in its topic. */
  readonly onAcked: (batch: Batch) => void;
  /** A fault that no repetition can mend. The lane stands still. */
  readonly onFault: (fault: Fault) => void;
}

/**
 * Sends what lanes hold, each lane one batch at a time. An ambiguous failure is answered by the identical bytes; a
 * named refusal that may pass, by the same batch after a back-off.
 */
export class LaneSender {
  readonly #deps: LaneSenderDeps;
  readonly #stop = new AbortController();
  /** The identity that lanes begin with; a lane that must renew takes a new one and leaves it here for others. */
  #producer: Promise<ProducerIdentity> | null = null;
  #busy = 0;
  #idle: (() => void)[] = [];

  constructor(deps: LaneSenderDeps) {
    this.#deps = deps;
  }

  /** Starts the lane when it is idle and has something. */
  kick(lane: Lane): void {
    if (this.#stop.signal.aborted) return;
    const batch = lane.next();
    if (batch === null) return;
    this.#busy++;
    void this.#run(lane, batch);
  }

  /** Resolves when no lane has a batch on its way. */
  async drained(): Promise<void> {
    while (this.#busy > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** No further send starts; what is on its way is left to itself. */
  stop(): void {
    this.#stop.abort();
  }

  async #run(lane: Lane, first: Batch): Promise<void> {
    try {
      for (let batch: Batch | null = first; batch !== null; batch = this.#stop.signal.aborted ? null : lane.next()) {
        if (!(await this.#deliver(lane, batch))) return;
        this.#deps.onAcked(lane.acked());
      }
    } catch (error) {
      this.#deps.onFault(
        error instanceof RelayError
          ? error.fault
          : { code: 'INTERNAL', disposition: 'halt', detail: `sending to ${lane.topic}`, cause: error },
      );
    } finally {
      this.#busy--;
      const idle = this.#idle;
      this.#idle = [];
      for (const wake of idle) wake();
    }
  }

  /** True when the batch is in its topic; false when the lane must stand still. */
  async #deliver(lane: Lane, batch: Batch): Promise<boolean> {
    const { publisher, log } = this.#deps;
    const place = { topic: lane.topic, partition: lane.partition };
    let sealed: SealedBatch | null = null;
    let heldSince: number | null = null;
    for (let tries = 1; ; tries++) {
      if (!(await this.#maySend())) return false;
      sealed ??= await this.#seal(lane, batch);
      if (!this.#deps.leader.maySend()) continue;
      const outcome = await publisher.send(sealed);
      if (outcome.as === 'acked') {
        if (heldSince !== null) {
          log.info('lane-flowing', { ...place, heldMs: Math.round(this.#deps.clock.nowMs() - heldSince), tries });
        }
        return true;
      }
      if (this.#stop.signal.aborted) return false;
      const { fault } = outcome;
      const uncertain = outcome.as === 'uncertain';
      if (!uncertain && fault.disposition !== 'retry' && fault.disposition !== 'renew') {
        this.#deps.onFault({ ...fault, detail: `${fault.detail} (topic ${lane.topic}, partition ${lane.partition})` });
        return false;
      }
      if (heldSince === null) {
        heldSince = this.#deps.clock.nowMs();
        log.warn('lane-held', { ...place, code: fault.code, detail: fault.detail, records: batch.records, uncertain });
      }
      if (fault.disposition === 'renew') {
        // A refused batch was not appended; an uncertain one may be there twice after this: a fault, and seen as one.
        await this.#renew(lane);
        sealed = null;
      }
      await pause(this.#deps.clock, backOffMs(BACK_OFF, tries, Math.random()), this.#stop.signal);
    }
  }

  async #maySend(): Promise<boolean> {
    while (!this.#stop.signal.aborted && !this.#deps.leader.maySend()) {
      await pause(this.#deps.clock, LEADERSHIP_POLL_MS, this.#stop.signal);
    }
    return !this.#stop.signal.aborted;
  }

  async #seal(lane: Lane, batch: Batch): Promise<SealedBatch> {
    if (lane.producer === null) lane.renew(await (this.#producer ??= this.#newProducer()));
    else if (lane.nextSequence > LAST_SEQUENCE) await this.#renew(lane);
    const { compression } = this.#deps;
    const buffer =
      compression === 'none' ? batch.buffer! : await compressRecords(batch.buffer!, batch.endBytes, compression);
    const endBytes = compression === 'none' ? batch.endBytes : buffer.length;
    sealBatch(buffer, endBytes, {
      records: batch.records,
      baseTimestampMs: batch.baseTimestampMs,
      maxTimestampMs: batch.maxTimestampMs,
      producer: lane.producer!,
      baseSequence: lane.nextSequence,
      compression,
    });
    return {
      topic: lane.topic,
      partition: lane.partition,
      bytes: buffer.subarray(0, endBytes),
      records: batch.records,
    };
  }

  async #renew(lane: Lane): Promise<void> {
    this.#producer = this.#newProducer();
    lane.renew(await this.#producer);
    this.#deps.log.warn('producer-renewed', { topic: lane.topic, partition: lane.partition });
  }

  async #newProducer(): Promise<ProducerIdentity> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#deps.publisher.newProducer();
      } catch (error) {
        if (!(error instanceof RelayError) || error.fault.disposition === 'halt' || this.#stop.signal.aborted)
          throw error;
        if (tries === 1) this.#deps.log.warn('producer-unavailable', { code: error.fault.code });
        await pause(this.#deps.clock, backOffMs(BACK_OFF, tries, Math.random()), this.#stop.signal);
      }
    }
  }
}
