import { backOffMs } from '../delivery/back-off.ts';
import type { Lane } from '../delivery/lane.ts';
import { TopicIndex, TopicLanes } from '../delivery/topic-lanes.ts';
import { type Clock, pause } from '../model/clock.ts';
import type { Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Publisher, TopicState } from '../model/publisher.ts';
import type { Field } from '../model/row.ts';

const BACK_OFF = { baseMs: 100, capMs: 5_000 };
/** How often the topics in use are asked for again: partitions grow, limits change. */
const REFRESH_MS = 30_000;

export interface TopicsDeps {
  readonly publisher: Publisher;
  readonly clock: Clock;
  readonly log: Log;
  readonly makeLane: (topic: string, partition: number) => Lane;
  /** A topic that no broker can say anything of is waited for so long. */
  readonly patienceMs: number;
}

/** The topics in use and their lanes. */
export class Topics {
  readonly #deps: TopicsDeps;
  readonly #index = new TopicIndex();
  /** Topics with more partitions than are in use: the new count waits for the lanes to drain. */
  readonly #grown = new Map<string, number>();

  constructor(deps: TopicsDeps) {
    this.#deps = deps;
  }

  find(name: Field): TopicLanes | undefined {
    return this.#index.find(name);
  }

  known(name: string): TopicLanes | undefined {
    return this.#index.known(name);
  }

  lanes(): Iterable<Lane> {
    return this.#index.lanes();
  }

  /** A partition count that waits to be used; null when there is none. */
  grown(topic: TopicLanes): number | null {
    return this.#grown.size === 0 ? null : (this.#grown.get(topic.topic) ?? null);
  }

  /** Not now: the next refresh names it again. */
  postpone(topic: TopicLanes): void {
    this.#grown.delete(topic.topic);
  }

  adopt(topic: TopicLanes, partitions: number): void {
    topic.adopt(partitions);
    this.#grown.delete(topic.topic);
    this.#deps.log.info('topic-grown', { topic: topic.topic, partitions });
  }

  /**
   * The topic's lanes, or why there are none: it cannot be used, or nobody could say within the time there is. Null
   * when `signal` was aborted. `patient` false: one answer is enough.
   */
  async open(name: string, signal: AbortSignal, patient = true): Promise<TopicLanes | Fault | null> {
    const { publisher, clock, log, patienceMs } = this.#deps;
    const beganMs = clock.nowMs();
    for (let tries = 1; ; tries++) {
      const state = await publisher.topic(name, tries > 1 || !patient);
      if (signal.aborted) return null;
      if (state.as === 'known') return this.#use(name, state);
      const { fault } = state;
      const mayPass = fault.disposition === 'retry' || fault.disposition === 'renew';
      if (!mayPass || !patient || clock.nowMs() - beganMs >= patienceMs) return fault;
      if (tries === 1) log.warn('topic-unavailable', { topic: name, code: fault.code });
      await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), signal);
    }
  }

  /** Until `signal` is aborted. A topic that cannot be asked for stays as it is: its next batch tells. */
  async keepFresh(signal: AbortSignal): Promise<void> {
    const { publisher, clock } = this.#deps;
    for (;;) {
      await pause(clock, REFRESH_MS, signal);
      for (const topic of [...this.#index.topics()]) {
        if (signal.aborted) return;
        const state = await publisher.topic(topic.topic, true);
        if (state.as === 'known') this.#refreshed(topic, state);
      }
      if (signal.aborted) return;
    }
  }

  #use(name: string, state: TopicState & { as: 'known' }): TopicLanes {
    const before = this.#index.known(name);
    if (before !== undefined) {
      this.#refreshed(before, state);
      return before;
    }
    const lanes = new TopicLanes(name, state.partitions, (topic, partition) => {
      const lane = this.#deps.makeLane(topic, partition);
      lane.maxBatchBytes = lanes.maxBatchBytes;
      return lane;
    });
    lanes.maxBatchBytes = state.maxBatchBytes;
    this.#index.add(lanes);
    this.#deps.log.info('topic-in-use', { topic: name, partitions: state.partitions });
    return lanes;
  }

  #refreshed(topic: TopicLanes, state: TopicState & { as: 'known' }): void {
    topic.maxBatchBytes = state.maxBatchBytes;
    for (const lane of topic.inUse()) lane.maxBatchBytes = state.maxBatchBytes;
    if (state.partitions > topic.partitions) this.#grown.set(topic.topic, state.partitions);
  }
}
