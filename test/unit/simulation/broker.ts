import { DEAD_LETTERS, type SendFault } from './plan.ts';
import type { SentBatch } from './decode-batch.ts';
import type { TableRow } from './table.ts';

/** A batch as it was when it was sent. */
export interface Sending {
  readonly topic: string;
  readonly partition: number;
  readonly batch: SentBatch;
  readonly rows: readonly SentRow[];
}

export interface SentRow {
  readonly row: TableRow;
  /** The sweep had claimed it. */
  readonly isSwept: boolean;
  /** The job that sends it again. */
  readonly job: string | null;
}

export type Appended =
  'appended' | 'duplicate' | { readonly refused: string; readonly disposition: 'renew' | 'reject' | 'park' };

interface Partition {
  fault: SendFault | null;
  readonly producers: Map<bigint, Producer>;
}

/** What a broker remembers of a producer: its last batches, to know them again. */
interface Producer {
  readonly last: { first: number; end: number }[];
  next: number;
}

const REMEMBERED = 5;

interface Topic {
  isKnown: boolean;
  readonly partitions: Partition[];
}

/** Kafka: topics, partitions, and the broker's rules for idempotent producers. */
export class Broker {
  readonly topics = new Map<string, Topic>();
  isReachable = true;
  #producers = 0n;
  readonly #refusals = new Map<TableRow, number>();
  /** Told of each batch that goes into a topic, in order. */
  onAppend: (sending: Sending) => void = () => undefined;

  constructor(partitions: Readonly<Record<string, number>>) {
    for (const [name, count] of Object.entries(partitions)) {
      this.topics.set(name, { isKnown: true, partitions: [] });
      this.grow(name, count);
    }
  }

  grow(name: string, count: number): void {
    const { partitions } = this.topics.get(name)!;
    while (partitions.length < count) partitions.push({ fault: null, producers: new Map() });
  }

  partition(topic: string, partition: number): Partition {
    return this.topics.get(topic)!.partitions[partition];
  }

  newProducer(): bigint {
    return this.#producers++;
  }

  /** How often the row was refused when it came alone. */
  refusalsOf(row: TableRow): number {
    return this.#refusals.get(row) ?? 0;
  }

  /** The leader's part of a produce request. */
  append(sending: Sending): Appended {
    const { topic, partition, batch, rows } = sending;
    if (!this.topics.get(topic)!.isKnown) return { refused: 'UNKNOWN_TOPIC_OR_PARTITION', disposition: 'park' };
    const poisoned = rows.find(
      ({ row }) =>
        topic !== DEAD_LETTERS && row.poison !== null && !row.isMended && this.refusalsOf(row) < row.poison.times,
    );
    if (poisoned !== undefined) {
      if (rows.length === 1) this.#refusals.set(poisoned.row, this.refusalsOf(poisoned.row) + 1);
      return { refused: poisoned.row.poison!.code, disposition: 'reject' };
    }
    const { producers } = this.partition(topic, partition);
    const first = batch.firstSequence;
    const end = first + batch.records.length;
    const producer = producers.get(batch.producerId);
    if (producer !== undefined) {
      if (producer.last.some((known) => known.first === first && known.end === end)) return 'duplicate';
      if (producer.next !== first) return { refused: 'OUT_OF_ORDER_SEQUENCE_NUMBER', disposition: 'renew' };
    }
    const last: Producer['last'] = producer?.last ?? [];
    last.push({ first, end });
    if (last.length > REMEMBERED) last.shift();
    producers.set(batch.producerId, { last, next: end });
    this.onAppend(sending);
    return 'appended';
  }
}
