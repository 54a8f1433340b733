import { partitionOf } from '../encoding/murmur2.ts';
import { type Field, Form, type OutboxRow } from '../model/row.ts';
import type { Lane } from './lane.ts';

/** The lanes of one topic, made as partitions come into use. */
export class TopicLanes {
  readonly topic: string;
  readonly partitions: number;
  readonly #lanes: (Lane | undefined)[];
  readonly #make: (topic: string, partition: number) => Lane;

  constructor(topic: string, partitions: number, make: (topic: string, partition: number) => Lane) {
    this.topic = topic;
    this.partitions = partitions;
    this.#lanes = new Array<Lane | undefined>(partitions);
    this.#make = make;
  }

  /**
   * Java's partition of the aggregate id. A row without one has no order to keep: its idempotency key spreads it, and
   * puts it in the same place when it is sent again.
   */
  laneOf(row: OutboxRow): Lane {
    const by = row.key.form === Form.Null ? row.idempotencyKey : row.key;
    const partition = partitionOf(by.buffer, by.start, by.end, this.partitions);
    return (this.#lanes[partition] ??= this.#make(this.topic, partition));
  }

  *inUse(): Iterable<Lane> {
    for (const lane of this.#lanes) if (lane !== undefined) yield lane;
  }
}

/** Topics by the bytes of their names. Rows of one topic mostly follow each other: the last one is remembered. */
export class TopicIndex {
  readonly #byName = new Map<string, TopicLanes>();
  #last: TopicLanes | null = null;
  #lastName = Buffer.alloc(0);

  find({ buffer, start, end }: Field): TopicLanes | undefined {
    if (this.#last !== null && end - start === this.#lastName.length) {
      const name = this.#lastName;
      let same = true;
      for (let i = 0; i < name.length; i++) {
        if (name[i] !== buffer[start + i]) {
          same = false;
          break;
        }
      }
      if (same) return this.#last;
    }
    const found = this.#byName.get(buffer.toString('utf8', start, end));
    if (found !== undefined) this.#remember(found);
    return found;
  }

  add(lanes: TopicLanes): void {
    this.#byName.set(lanes.topic, lanes);
    this.#remember(lanes);
  }

  *lanes(): Iterable<Lane> {
    for (const topic of this.#byName.values()) yield* topic.inUse();
  }

  #remember(lanes: TopicLanes): void {
    this.#last = lanes;
    this.#lastName = Buffer.from(lanes.topic);
  }
}
