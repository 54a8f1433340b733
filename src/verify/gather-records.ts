import { readRecordSet } from '../encoding/record-set.ts';
import type { TopicReader } from '../kafka/topic-reader.ts';
import type { Buckets } from './buckets.ts';
import { AT, Flag, RECORD_BYTES, writeContent } from './entries.ts';
import { contentOf } from './row-content.ts';
import type { RowTopic } from './topic-list.ts';

/** Clocks of applications and brokers differ, and a row's time is that of its statement, not of its commit. */
const MARGIN_MS = 60_000;
/** Answers without a whole batch, before what is left of a partition is believed to be gone. */
const EMPTY_ANSWERS = 3;

export interface GatherRecordsOptions {
  readonly reader: TopicReader;
  readonly topics: readonly RowTopic[];
  readonly into: Buckets;
  readonly progress: (done: number, records: number) => void;
}

export interface GatheredRecords {
  readonly records: number;
  /** By topic, by partition: rows created before may be gone by retention. */
  readonly expiredBeforeMs: readonly (readonly number[])[];
}

/** What is to be read of one partition. */
interface Stretch {
  readonly topic: RowTopic;
  readonly partition: number;
  readonly from: number;
  readonly to: number;
  /** It begins with the first record that is left, and there have been others. */
  isCut: boolean;
}

/**
 * Entries of the records of these topics, from about the oldest row on to the ends of this moment: whatever was
 * published before has its record before them.
 */
export async function gatherRecords(options: GatherRecordsOptions): Promise<GatheredRecords> {
  const { reader, topics, into, progress } = options;
  const stretches: Stretch[] = [];
  for (const topic of topics) {
    for (let partition = 0; partition < topic.partitions; partition++) {
      stretches.push(await stretchOf(reader, topic, partition));
    }
  }
  const total = stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  const begins: PartitionBegin[][] = topics.map(() => []);
  const entry = Buffer.alloc(RECORD_BYTES);
  let records = 0;
  let before = 0;
  for (const stretch of stretches) {
    const { topic, partition, from, to } = stretch;
    let firstMs = Infinity;
    let empty = 0;
    for (let offset = from; offset < to;) {
      const set = await reader.fetch(topic.name, partition, offset);
      if (set === null) {
        stretch.isCut = true;
        offset = Math.max(offset + 1, await reader.firstOffset(topic.name, partition));
        firstMs = Infinity;
        continue;
      }
      const next = readRecordSet(set.records, offset, (record) => {
        if (record.offset >= to) return;
        const relayed = contentOf(record, topic.index);
        // What is sent again has the time of the first delivery.
        if (firstMs === Infinity && relayed?.replayed !== true) firstMs = record.timestampMs;
        if (relayed === null) return;
        records++;
        writeContent(entry, relayed.content);
        entry[AT.flags] = relayed.replayed ? Flag.Replayed : 0;
        entry.writeUInt32BE(partition, AT.partition);
        entry.writeDoubleBE(record.offset, AT.place);
        into.add(entry[AT.identity], entry);
      });
      if (next === offset && ++empty === EMPTY_ANSWERS) break;
      if (next > offset) empty = 0;
      offset = next;
      progress(total === 0 ? 1 : (before + Math.min(offset, to) - from) / total, records);
    }
    before += to - from;
    begins[topic.index][partition] = {
      isCut: stretch.isCut,
      firstMs: from === 0 || stretch.isCut ? firstMs : -Infinity,
    };
  }
  return { records, expiredBeforeMs: begins.map(expiredOf) };
}

interface PartitionBegin {
  /** There were records before its first one. */
  readonly isCut: boolean;
  /** Of the first record that is left; Infinity: none is; -Infinity: there are older ones than were read. */
  readonly firstMs: number;
}

/**
 * By partition, rows created before may be gone. A partition that has nothing as old as a row may have been added since:
 * the row was in another one then, and is gone with what is gone there.
 */
function expiredOf(begins: readonly PartitionBegin[]): number[] {
  const cuts = begins.filter(({ isCut }) => isCut).map(({ firstMs }) => firstMs + MARGIN_MS);
  const lastCutMs = Math.max(-Infinity, ...cuts);
  return begins.map(({ isCut, firstMs }) => (isCut ? firstMs + MARGIN_MS : Math.min(lastCutMs, firstMs - MARGIN_MS)));
}

async function stretchOf(reader: TopicReader, topic: RowTopic, partition: number): Promise<Stretch> {
  const { name, oldestMs } = topic;
  const to = await reader.endOffset(name, partition);
  const first = await reader.firstOffset(name, partition);
  const since = Number.isFinite(oldestMs) ? await reader.offsetSince(name, partition, oldestMs - MARGIN_MS) : first;
  const from = Math.min(to, Math.max(first, since ?? to));
  return { topic, partition, from, to, isCut: first > 0 && from === first };
}
