import { backOffMs } from '../delivery/back-off.ts';
import { BatchRecords } from '../delivery/batch-records.ts';
import { recordKeyText } from '../delivery/row-key.ts';
import type { Lane } from '../delivery/lane.ts';
import { BATCH_HEADER_BYTES, compressRecords, sealBatch } from '../encoding/record-batch.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Scope } from '../model/parked.ts';
import type { ProducerIdentity, Publisher, SealedBatch, SendOutcome } from '../model/publisher.ts';
import type { Compression } from '../model/settings.ts';
import type { RowId } from '../model/row-ids.ts';
import type { RelayStats } from '../model/stats.ts';
import type { Leader } from '../model/store.ts';
import type { Parking } from './parking.ts';
import type { RowVerdicts, Verdict } from './row-verdicts.ts';
import type { Settlement } from './settlement.ts';

/** A lane that cannot deliver tries again after these; a leader election mostly takes less than a second. */
const BACK_OFF = { baseMs: 50, capMs: 2_000 };
/** How often a lane looks again whether it may send. */
const LEADERSHIP_POLL_MS = 20;
/** A leader election mostly takes less: so long every lane is tried before it is parked. */
const ELECTION_MS = 1_000;
/** Sequence numbers are renewed long before they wrap. */
const LAST_SEQUENCE = 2 ** 31 - 1_000_000;

export interface LaneSenderDeps {
  readonly publisher: Publisher;
  readonly leader: Leader;
  readonly clock: Clock;
  readonly log: Log;
  readonly compression: Compression;
  /** A lane that has not delivered for so long is parked. */
  readonly laneStallMs: number;
  /** A lane that cannot deliver and holds more than this is parked at once. */
  readonly maxStuckBytes: number;
  readonly settlement: Settlement;
  readonly parking: Parking;
  readonly verdicts: RowVerdicts;
  readonly stats: RelayStats;
  /** A fault that nothing here can mend. The lane stands still. */
  readonly onFault: (fault: Fault) => void;
}

/** What is known of the batch that a lane is sending. */
interface Effort {
  /** How many of its records are sent together: fewer and fewer of a batch that is refused. */
  part: number;
  sealed: SealedBatch | Fault | null;
  tries: number;
  /** Since when it has not been delivered; null: not tried yet, or refused for what it is. */
  heldSince: number | null;
  /** Some try may have been appended: under other bytes its sequence number must not be used again. */
  isUncertain: boolean;
}

/**
 * Sends what lanes hold, each lane one batch at a time. An ambiguous failure is answered by the identical bytes; a
 * named refusal that may pass, by the same batch after a back-off; a refusal of the batch for what is in it, by ever
 * smaller fronts of it, down to the row. A lane that cannot deliver is parked and leaves memory.
 */
export class LaneSender {
  readonly #deps: LaneSenderDeps;
  readonly #stop = new AbortController();
  /** The identity that lanes begin with; a lane that must renew takes a new one and leaves it here for others. */
  #producer: Promise<ProducerIdentity> | null = null;
  /** They gave an uncertain batch up: a broker could take their next one for it (M8). */
  readonly #mustRenew = new Set<Lane>();
  #busy = 0;
  #idle: (() => void)[] = [];

  constructor(deps: LaneSenderDeps) {
    this.#deps = deps;
  }

  /** Starts the lane when it is idle and has something. */
  kick(lane: Lane): void {
    if (this.#stop.signal.aborted) return;
    if (lane.next() === null) return;
    this.#busy++;
    void this.#run(lane);
  }

  /** Resolves when no lane has a batch on its way. */
  async drained(): Promise<void> {
    while (this.#busy > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** No further send starts; what is on its way is left to itself. */
  stop(): void {
    this.#stop.abort();
  }

  async #run(lane: Lane): Promise<void> {
    try {
      do {
        if (!(await this.#deliver(lane))) return;
      } while (!this.#stop.signal.aborted && lane.next() !== null);
    } catch (error) {
      this.#deps.onFault(
        error instanceof RelayError
          ? error.fault
          : { code: 'INTERNAL', disposition: 'halt', detail: `sending to ${lane.topic}`, cause: error },
      );
    } finally {
      this.#busy--;
      this.#deps.stats.heldLanes.delete(laneName(lane));
      const idle = this.#idle;
      this.#idle = [];
      for (const wake of idle) wake();
    }
  }

  /** True when the batch that the lane is sending is settled; false when the lane must stand still. */
  async #deliver(lane: Lane): Promise<boolean> {
    const { publisher, leader, settlement } = this.#deps;
    const effort: Effort = {
      ...{ part: lane.sending!.records, sealed: null, tries: 0, heldSince: null, isUncertain: false },
    };
    while (lane.sending !== null) {
      if (!(await this.#maySend())) return false;
      const sealed = (effort.sealed ??= await this.#sealOrFault(lane, effort.part));
      if (!leader.maySend()) continue;
      effort.tries++;
      const outcome: SendOutcome = 'code' in sealed ? { as: 'refused', fault: sealed } : await publisher.send(sealed);
      if (outcome.as === 'acked') {
        this.#reportFlowing(lane, effort);
        const whole = effort.part >= lane.sending.records;
        settlement.acked(whole ? lane.acked() : lane.ackedFront(effort.part));
        if (!whole) begin(effort, Math.min(effort.part * 2, lane.sending.records));
        continue;
      }
      if (this.#stop.signal.aborted) return false;
      const next =
        outcome.as === 'refused' && outcome.fault.disposition === 'reject' && !this.#deps.parking.isKept(lane)
          ? await this.#refused(lane, effort, outcome.fault)
          : await this.#failed(lane, effort, outcome);
      // The lane is not looked at: when its batch is gone, somebody may have begun to send the next one meanwhile.
      if (next !== 'again') return next === 'settled';
    }
    return true;
  }

  /** The broker appended nothing and says that it is the batch: what of it can be delivered is, row by row if need be. */
  async #refused(lane: Lane, effort: Effort, fault: Fault): Promise<'again' | 'settled' | 'stands'> {
    if (effort.isUncertain) this.#mustRenew.add(lane);
    if (effort.part > 1) {
      begin(effort, Math.floor(effort.part / 2));
      return 'again';
    }
    const { settlement, verdicts } = this.#deps;
    const batch = lane.sending!;
    const place = { buffer: batch.buffer!, start: BATCH_HEADER_BYTES, end: batch.front(1) };
    const record = new BatchRecords(batch, place.buffer, place.end);
    record.next();
    const { outbox, id } = record;
    const key = recordKeyText(record);
    const attempts = settlement.attemptsOf(batch, outbox, id);
    const verdict = await verdicts.ofRecord(lane, { outbox, id, key, attempts }, fault, place);
    if (this.#stop.signal.aborted) return 'stands';
    const refused = lane.dropSending((record) => record.index === 0)!;
    if (verdict.park !== null) this.#parkPair(lane, Buffer.from(key, 'latin1'), { outbox, id }, verdict);
    settlement.failed(refused, verdict.failure);
    begin(effort, 1);
    return lane.sending === null ? 'settled' : 'again';
  }

  /** The pair waits: its later rows must not pass the one that could not be delivered. */
  #parkPair(lane: Lane, key: Buffer, row: { outbox: number; id: RowId }, { park, reason }: Verdict): void {
    const { parking, settlement } = this.#deps;
    const scope = { kind: 'pair', topic: lane.topic, partition: lane.partition, key } as const;
    const why = { reason, row, ...(park === 'until somebody acts' ? { dueInMs: null } : {}) };
    const parked = parking.park(scope, why);
    const siblings = lane.sending === null ? null : lane.dropSending((record) => parking.covers(parked, lane, record));
    if (siblings !== null) settlement.left(siblings);
  }

  /** Nothing of the batch is known to be at fault. */
  async #failed(lane: Lane, effort: Effort, outcome: SendOutcome & { fault: Fault }): Promise<'again' | 'stands'> {
    const { parking, clock, log } = this.#deps;
    const { fault } = outcome;
    const place = { topic: lane.topic, partition: lane.partition };
    const isUncertain = outcome.as === 'uncertain';
    if (isUncertain) effort.isUncertain = true;
    const mayPass = isUncertain || fault.disposition === 'retry' || fault.disposition === 'renew';
    if (!mayPass) {
      if (fault.disposition === 'park' && !parking.isKept(lane)) {
        this.#giveUp(lane, effort, { kind: 'topic', topic: lane.topic }, fault);
      } else {
        this.#deps.onFault({ ...fault, detail: `${fault.detail} (topic ${lane.topic}, partition ${lane.partition})` });
      }
      return 'stands';
    }
    if (effort.heldSince === null) {
      effort.heldSince = clock.nowMs();
      this.#deps.stats.heldLanes.set(laneName(lane), effort.heldSince);
      const { records } = lane.sending!;
      log.warn('lane-held', { ...place, code: fault.code, detail: fault.detail, records, uncertain: isUncertain });
    }
    if (this.#isStuck(lane, effort)) {
      this.#giveUp(lane, effort, { kind: 'topic-partition', ...place }, fault);
      return 'stands';
    }
    if (fault.disposition === 'renew') {
      // A refused batch was not appended; an uncertain one may be there twice after this: a fault, and seen as one.
      this.#mustRenew.add(lane);
      effort.isUncertain = false;
    }
    // Under another identity, or because there was none, the batch is sealed anew.
    if (fault.disposition === 'renew' || 'code' in effort.sealed!) effort.sealed = null;
    await pause(clock, backOffMs(BACK_OFF, effort.tries, Math.random()), this.#stop.signal);
    return 'again';
  }

  #isStuck(lane: Lane, effort: Effort): boolean {
    const { parking, clock, laneStallMs, maxStuckBytes } = this.#deps;
    if (parking.isKept(lane)) return false;
    const heldMs = clock.nowMs() - effort.heldSince!;
    if (heldMs >= laneStallMs) return true;
    if (heldMs < ELECTION_MS) return false;
    // The sweep has other scopes to serve than the one whose rows these are.
    return lane.bytes > maxStuckBytes || lane.sending!.isSwept;
  }

  /** The lane leaves memory: its rows are the sweep's from now on. */
  #giveUp(lane: Lane, effort: Effort, scope: Scope, fault: Fault): void {
    const { parking, settlement } = this.#deps;
    if (effort.isUncertain) this.#mustRenew.add(lane);
    const batches = lane.takeAll();
    parking.park(scope, { reason: fault.code, partitions: parking.partitionsOf(lane) });
    for (const batch of batches) settlement.left(batch);
  }

  #reportFlowing(lane: Lane, { heldSince, tries }: Effort): void {
    if (heldSince === null) return;
    this.#deps.stats.heldLanes.delete(laneName(lane));
    const heldMs = Math.round(this.#deps.clock.nowMs() - heldSince);
    this.#deps.log.info('lane-flowing', { topic: lane.topic, partition: lane.partition, heldMs, tries });
  }

  async #maySend(): Promise<boolean> {
    while (!this.#stop.signal.aborted && !this.#deps.leader.maySend()) {
      await pause(this.#deps.clock, LEADERSHIP_POLL_MS, this.#stop.signal);
    }
    return !this.#stop.signal.aborted;
  }

  /** The fault: there is no producer identity to be had now; nothing was sent. */
  async #sealOrFault(lane: Lane, records: number): Promise<SealedBatch | Fault> {
    try {
      return await this.#seal(lane, records);
    } catch (error) {
      if (!(error instanceof RelayError) || error.fault.disposition === 'halt') throw error;
      return { ...error.fault, disposition: 'retry' };
    }
  }

  /** The first `records` of what the lane is sending. Throws a `RelayError` where no identity can be had. */
  async #seal(lane: Lane, records: number): Promise<SealedBatch> {
    if (lane.producer === null) lane.renew(await this.#identity());
    else if (lane.nextSequence > LAST_SEQUENCE || this.#mustRenew.has(lane)) await this.#renew(lane);
    const { compression } = this.#deps;
    const batch = lane.sending!;
    const frontBytes = batch.front(records);
    const buffer =
      compression === 'none' ? batch.buffer! : await compressRecords(batch.buffer!, frontBytes, compression);
    const endBytes = compression === 'none' ? frontBytes : buffer.length;
    sealBatch(buffer, endBytes, {
      records,
      baseTimestampMs: batch.baseTimestampMs,
      maxTimestampMs: batch.maxTimestampMsOf(records),
      producer: lane.producer!,
      baseSequence: lane.nextSequence,
      compression,
    });
    return {
      topic: lane.topic,
      partition: lane.partition,
      bytes: buffer.subarray(0, endBytes),
      records,
    };
  }

  async #renew(lane: Lane): Promise<void> {
    this.#producer = null;
    lane.renew(await this.#identity());
    this.#mustRenew.delete(lane);
    this.#deps.log.warn('producer-renewed', { topic: lane.topic, partition: lane.partition });
  }

  async #identity(): Promise<ProducerIdentity> {
    const asked = (this.#producer ??= this.#newProducer());
    try {
      return await asked;
    } catch (error) {
      if (this.#producer === asked) this.#producer = null;
      throw error;
    }
  }

  /** A coordinator that is just starting is waited for, but not for long: the lane may be the sweep's. */
  async #newProducer(): Promise<ProducerIdentity> {
    const { publisher, clock } = this.#deps;
    const beganMs = clock.nowMs();
    for (let tries = 1; ; tries++) {
      try {
        return await publisher.newProducer();
      } catch (error) {
        const mayPass = error instanceof RelayError && error.fault.disposition !== 'halt';
        if (!mayPass || this.#stop.signal.aborted || clock.nowMs() - beganMs >= ELECTION_MS) throw error;
        await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), this.#stop.signal);
      }
    }
  }
}

function laneName({ topic, partition }: Lane): string {
  return `${topic}/${partition}`;
}

/** Anew with so many records together: something of the batch was settled, or refused. */
function begin(effort: Effort, part: number): void {
  effort.part = part;
  effort.sealed = null;
  effort.tries = 0;
  effort.heldSince = null;
  effort.isUncertain = false;
}
