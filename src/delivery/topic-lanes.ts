import { partitionOf } from '../encoding/murmur2.ts';
import { UUID_TEXT_BYTES, writeUuid } from '../encoding/uuid.ts';
import { type Field, Form, type OutboxRow } from '../model/row.ts';
import type { Lane } from './lane.ts';
import { NO_AGGREGATE } from './row-key.ts';

/** The lanes of one topic, made as partitions come into use. */
export class TopicLanes {
  readonly topic: string;
  /** The largest batch that its brokers take; null where they do not tell. */
  maxBatchBytes: number | null = null;
  readonly #lanes: (Lane | undefined)[];
  readonly #make: (topic: string, partition: number) => Lane;

  constructor(topic: string, partitions: number, make: (topic: string, partition: number) => Lane) {
    this.topic = topic;
    this.#lanes = new Array<Lane | undefined>(partitions);
    this.#make = make;
  }

  get partitions(): number {
    return this.#lanes.length;
  }

  get isEmpty(): boolean {
    return this.#lanes.every((lane) => lane === undefined || lane.isEmpty);
  }

  /**
   * Java's partition of the aggregate id. A row without one has no order to keep: its idempotency key spreads it, and
   * puts it in the same place when it is sent again.
   */
  laneOf(row: OutboxRow): Lane {
    const { key } = row;
    const partition =
      key.form === Form.Null
        ? this.#withoutKey(row.idempotencyKey)
        : partitionOf(key.buffer, key.start, key.end, this.partitions);
    return this.lane(partition);
  }

  /** Of the row whose `scopeKeyText` these bytes are. */
  partitionOf(scopeKey: Buffer): number {
    const start = scopeKey[0] === NO_AGGREGATE_BYTE ? 1 : 0;
    return partitionOf(scopeKey, start, scopeKey.length, this.partitions);
  }

  lane(partition: number): Lane {
    return (this.#lanes[partition] ??= this.#make(this.topic, partition));
  }

  /**
   * Goes on with another number of partitions. Keys move to other lanes then, so all must be empty: throws a RangeError
   * otherwise. Lanes stay what they are: a broker would take numbers that begin again for batches that it has.
   */
  adopt(partitions: number): void {
    if (!this.isEmpty) throw new RangeError(`${this.topic} has rows in its lanes`);
    this.#lanes.length = partitions;
  }

  *inUse(): Iterable<Lane> {
    for (const lane of this.#lanes) if (lane !== undefined) yield lane;
  }

  /** As header `id` has it: whoever reads the row, and however, there is one text of it. */
  #withoutKey({ form, buffer, start, end }: Field): number {
    if (form === Form.Uuid) return partitionOf(uuid, 0, writeUuid(uuid, 0, buffer, start, end), this.partitions);
    return partitionOf(buffer, start, form === Form.Null ? start : end, this.partitions);
  }
}

const NO_AGGREGATE_BYTE = NO_AGGREGATE.charCodeAt(0);
const uuid = Buffer.alloc(UUID_TEXT_BYTES);

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

  known(name: string): TopicLanes | undefined {
    return this.#byName.get(name);
  }

  topics(): Iterable<TopicLanes> {
    return this.#byName.values();
  }

  *lanes(): Iterable<Lane> {
    for (const topic of this.#byName.values()) yield* topic.inUse();
  }

  #remember(lanes: TopicLanes): void {
    this.#last = lanes;
    this.#lastName = Buffer.from(lanes.topic);
  }
}
