import { setTimeout as sleep } from 'node:timers/promises';
import { fault, RelayError, type Fault } from '../model/fault.ts';
import type { SealedBatch, SendOutcome } from '../model/publisher.ts';
import type { KafkaCounts } from '../model/server-counts.ts';
import type { Brokers } from './brokers.ts';
import { clientFault, isPeerClosed, timeout } from './client-faults.ts';
import {
  brokerFault,
  CORRUPT_MESSAGE,
  DUPLICATE_SEQUENCE_NUMBER,
  LEADER_NOT_AVAILABLE,
  THROTTLING_QUOTA_EXCEEDED,
  verdictOf,
} from './fault-table.ts';
import type { Limits } from './limits.ts';
import type { Link } from './link.ts';
import { askMetadata, type MetadataRefresher } from './metadata.ts';
import { readProduceAnswer } from './produce-request.ts';
import type { Routes } from './routes.ts';
import { overTopicLimit, requestTooLarge } from './size-check.ts';
import { Strikes } from './strikes.ts';
import { within } from './within.ts';

/**
 * The part of the request time-out that finding the leader and a connection may take. The rest is the request's own:
 * one that starts late must not cut a good connection.
 */
const ROUTE_SHARE = 1 / 2;

/** The leader gives up waiting for its replicas before we give up waiting for it, so that the connection survives. */
const ACK_SHARE = 3 / 4;

/** "Corrupt", or a code that nobody knows, so often for the same bytes is no accident. */
const ODD_LIMIT = 3;

/** No broker closes the connection on a request smaller than this for its size (`socket.request.max.bytes`). */
const SUSPECT_BYTES = 1 << 20;
/** Closed on so often running for the same bytes, all but the first time on a connection of their own. */
const HUNG_UP_LIMIT = 3;

/** From this version on the broker answers first and then does not read for `throttle_time_ms` (KIP-219). */
const THROTTLE_VERSION = 6;

/** Sends one batch to the leader of its partition. Keeps nothing but what must be known of bytes that fail again. */
export class Sender {
  readonly #requestTimeoutMs: number;
  readonly #brokers: Brokers;
  readonly #metadata: MetadataRefresher;
  readonly #routes: Routes;
  readonly #limits: Limits;
  readonly #counts: KafkaCounts;
  readonly #strikes = new Strikes();

  constructor(
    requestTimeoutMs: number,
    brokers: Brokers,
    metadata: MetadataRefresher,
    routes: Routes,
    limits: Limits,
    counts: KafkaCounts,
  ) {
    this.#counts = counts;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#brokers = brokers;
    this.#metadata = metadata;
    this.#routes = routes;
    this.#limits = limits;
  }

  /** Never rejects; resolves within the request time-out. */
  async send(batch: SealedBatch): Promise<SendOutcome> {
    const startedMs = performance.now();
    // What may be in the topic, appended under another limit, goes out all the same: only the broker can tell.
    if (batch.bytes.length > (this.#limits.batchBytes(batch.topic) ?? Infinity) && !this.#strikes.mayBeThere(batch)) {
      const tooLarge = await overTopicLimit(batch, this.#limits);
      if (tooLarge !== null) return { as: 'refused', fault: tooLarge };
    }
    const outcome = await this.#attempt(batch, startedMs);
    if (outcome.as === 'uncertain') this.#strikes.noteUncertain(batch);
    return outcome;
  }

  async #attempt(batch: SealedBatch, startedMs: number): Promise<SendOutcome> {
    const where = `${batch.topic}-${batch.partition}`;
    const apart = this.#strikes.hungUp(batch) > 0;
    let link: Link;
    try {
      link = (apart ? null : this.#readyLink(batch)) ?? (await this.#findLink(batch, apart, where));
      // Since it was found: nothing has been written yet.
      if (link.ended) throw fault('KAFKA_UNREACHABLE', 'retry', `${link.name}: the connection has just been lost`);
    } catch (error) {
      const found = connectionFault(error, where);
      if (found.disposition !== 'reject') this.#routes.doubt(batch.topic, batch.partition);
      return { as: 'refused', fault: found };
    }
    const leftMs = this.#requestTimeoutMs - (performance.now() - startedMs);
    const timer = setTimeout(() => link.drop(timeout(link.name, 'no answer in time')), leftMs);
    try {
      const payload = await link.produce(batch, Math.ceil(leftMs * ACK_SHARE));
      return this.#judge(batch, link, payload, where);
    } catch (error) {
      const found = connectionFault(error, link.name);
      link.drop(found);
      this.#routes.doubt(batch.topic, batch.partition);
      const untilMs = startedMs + this.#requestTimeoutMs;
      const tooLarge = isPeerClosed(error) && (await this.#isTooLarge(batch, link, apart, untilMs));
      return tooLarge
        ? { as: 'refused', fault: requestTooLarge(where, link.requestBytes(batch), null) }
        : { as: 'uncertain', fault: found };
    } finally {
      clearTimeout(timer);
      if (apart) link.retire();
    }
  }

  /** The usual case, without a detour through the event loop. */
  #readyLink({ topic, partition, bytes }: SealedBatch): Link | null {
    if (bytes.length > SUSPECT_BYTES) return null;
    const leader = this.#routes.leader(topic, partition);
    const link = leader === null ? null : (this.#brokers.node(leader)?.data.ready ?? null);
    return link === null || link.throttledUntilMs > performance.now() ? null : link;
  }

  #findLink(batch: SealedBatch, apart: boolean, where: string): Promise<Link> {
    const boundMs = this.#requestTimeoutMs * ROUTE_SHARE;
    const finding = this.#leaderLink(batch, apart, where, boundMs);
    let late = false;
    finding.then((link) => late && apart && link.retire()).catch(() => undefined);
    return within(boundMs, finding, () => {
      late = true;
      return new RelayError(timeout(where, 'no leader or no connection to it in time'));
    });
  }

  async #leaderLink(batch: SealedBatch, apart: boolean, where: string, boundMs: number): Promise<Link> {
    const { topic, partition } = batch;
    if (this.#routes.leader(topic, partition) === null) {
      const entry = await this.#metadata.refresh(topic);
      const obstacle = this.#routes.obstacle(entry, partition, performance.now());
      if (obstacle !== null) throw new RelayError(obstacle);
    }
    const leader = this.#routes.leader(topic, partition) ?? -1;
    const node = this.#brokers.node(leader);
    if (node === undefined)
      throw new RelayError(brokerFault(LEADER_NOT_AVAILABLE, `${where}: its leader is not known`));
    const link = apart ? await node.ownLink() : await node.data.get();
    if (batch.bytes.length > SUSPECT_BYTES && !this.#strikes.mayBeThere(batch)) {
      const limitBytes = await this.#limits.requestBytes(node, leader);
      const requestBytes = link.requestBytes(batch);
      if (requestBytes > (limitBytes ?? Infinity)) {
        throw new RelayError(requestTooLarge(where, requestBytes, limitBytes));
      }
    }
    const throttledMs = link.throttledUntilMs - performance.now();
    if (throttledMs > boundMs) throw new RelayError(brokerFault(THROTTLING_QUOTA_EXCEEDED, link.name));
    if (throttledMs > 0) await sleep(throttledMs);
    return link;
  }

  #judge(batch: SealedBatch, link: Link, payload: Buffer, where: string): SendOutcome {
    const answer = readProduceAnswer(link.produceVersion, payload, batch);
    if (answer === null) {
      const mismatch: Fault = {
        code: 'KAFKA_RESPONSE_MISMATCH',
        disposition: 'retry',
        detail: `${link.name}: the answer does not name ${where}, and that alone`,
      };
      link.drop(mismatch);
      return { as: 'uncertain', fault: mismatch };
    }
    const { errorCode, throttleMs } = answer;
    this.#counts.throttledMs += throttleMs;
    if (link.produceVersion >= THROTTLE_VERSION) link.throttle(throttleMs);
    if (errorCode === 0 || errorCode === DUPLICATE_SEQUENCE_NUMBER) {
      this.#strikes.forget(batch);
      return { as: 'acked', duplicate: errorCode !== 0 };
    }
    const { appended, disposition } = verdictOf(errorCode);
    const found = brokerFault(errorCode, where);
    if (disposition === 'reject' && (errorCode === CORRUPT_MESSAGE || appended === 'maybe')) {
      // Had the first been appended after all, the broker would have known the sequence number of the second.
      if (this.#strikes.noteOdd(batch) >= ODD_LIMIT) return { as: 'refused', fault: found };
    } else if (disposition !== 'retry') return { as: 'refused', fault: found };
    this.#routes.doubt(batch.topic, batch.partition);
    return { as: appended === 'maybe' ? 'uncertain' : 'refused', fault: { ...found, disposition: 'retry' } };
  }

  /**
   * A broker closes the connection on a request that is over its `socket.request.max.bytes`, before it reads it: from
   * outside that is a lost connection, and would be repeated for ever. So bytes on which the connection was closed go
   * over one of their own, where nothing else can be the reason; if that is closed too while the broker answers others,
   * it is the size. The broker has appended nothing then: it never read the batch.
   */
  async #isTooLarge(batch: SealedBatch, link: Link, apart: boolean, untilMs: number): Promise<boolean> {
    if (batch.bytes.length <= SUSPECT_BYTES) return false;
    if (this.#strikes.noteHungUp(batch) < HUNG_UP_LIMIT || !apart) return false;
    const leftMs = Math.max(1, untilMs - performance.now());
    const answers = async () => askMetadata(await this.#brokers.at(link.address).control.get(), [], leftMs);
    try {
      await within(leftMs, answers(), () => new RelayError(timeout(link.name, 'no answer in time')));
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * What is to be renewed here is the connection, and that is done by ending it. The producer must stay: its identity is
 * what makes it safe to send the batch again.
 */
function connectionFault(error: unknown, where: string): Fault {
  const found = clientFault(error, where);
  return found.disposition === 'renew' ? { ...found, disposition: 'retry' } : found;
}
