import type { TopicReader } from '../kafka/topic-reader.ts';
import { fault } from '../model/fault.ts';

/** Numbers of topics are two bytes of an entry. */
const MAX_TOPICS = 0xffff;

/** A topic that rows name. */
export interface RowTopic {
  readonly index: number;
  readonly name: string;
  /** 0: there is no such topic. */
  readonly partitions: number;
  readonly compacted: boolean;
  /** Of its rows; Infinity: none has a time; -Infinity: one has none. */
  oldestMs: number;
  rows: number;
}

/** Topics in the order in which rows name them. */
export class TopicList {
  readonly #reader: TopicReader;
  readonly #byName = new Map<string, RowTopic>();

  constructor(reader: TopicReader) {
    this.#reader = reader;
  }

  get all(): readonly RowTopic[] {
    return [...this.#byName.values()];
  }

  known(name: string): RowTopic | undefined {
    return this.#byName.get(name);
  }

  async ask(name: string): Promise<RowTopic> {
    if (this.#byName.size === MAX_TOPICS) throw fault('INTERNAL', 'halt', 'more topics than can be verified at once');
    const shape = await this.#reader.shape(name);
    const topic: RowTopic = {
      index: this.#byName.size,
      name,
      partitions: shape?.partitions ?? 0,
      compacted: shape?.compacted ?? false,
      oldestMs: Infinity,
      rows: 0,
    };
    this.#byName.set(name, topic);
    return topic;
  }
}
