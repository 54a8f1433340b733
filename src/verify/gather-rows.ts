import { partitionOf } from '../encoding/murmur2.ts';
import { Form, type OutboxRow } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import { idText } from '../store/people-ids.ts';
import type { Buckets } from './buckets.ts';
import { AT, Flag, ROW_BYTES, writeContent } from './entries.ts';
import { contentOfRow } from './row-content.ts';
import type { RowRange, TableRows } from './table-rows.ts';
import type { RowTopic, TopicList } from './topic-list.ts';

export interface GatherOptions {
  readonly outbox: number;
  readonly table: TableRows;
  readonly range: RowRange;
  readonly topics: TopicList;
  /** Rows for other topics are left out. */
  readonly onlyTopic: string | null;
  /** Primary keys (as people read them) of rows that somebody has had delivered later. */
  readonly retried: ReadonlySet<string>;
  readonly into: Buckets;
  readonly progress: (rows: number, at: RowId) => void;
}

export interface GatheredRows {
  rows: number;
  /** Primary keys of rows that cannot become a record: they say that they are published all the same. */
  readonly unencodable: string[];
}

/** Entries of all rows of one outbox that should be in Kafka. */
export async function gatherRows(options: GatherOptions): Promise<GatheredRows> {
  const { outbox, table, range, topics, onlyTopic, retried, into, progress } = options;
  const gathered: GatheredRows = { rows: 0, unencodable: [] };
  const entry = Buffer.alloc(ROW_BYTES);
  for await (const { rows, facts, last } of table.read(range)) {
    while (rows.next()) {
      const { row } = rows;
      const id = idOfRow(row);
      const name = row.topic.form === Form.Null ? null : textOf(row.topic);
      if (onlyTopic !== null && name !== onlyTopic) continue;
      const topic = name === null ? null : (topics.known(name) ?? (await topics.ask(name)));
      const content = topic === null ? null : contentOfRow(row, topic.index);
      if (topic === null || content === null) {
        gathered.unencodable.push(idText(table.kind, id));
        continue;
      }
      gathered.rows++;
      note(topic, row.createdAtMs);
      writeContent(entry, content);
      const fact = facts.get(id);
      const isRetried = fact?.attempted === true || (retried.size > 0 && retried.has(idText(table.kind, id)));
      const hasOrder = content.key !== null && (table.kind === 'integer' || row.createdAtMs >= 0);
      entry[AT.outbox] = outbox;
      entry[AT.flags] =
        (fact?.delayed === true ? Flag.Delayed : 0) |
        (isRetried ? Flag.Retried : 0) |
        (hasOrder ? 0 : Flag.Unordered) |
        (content.value === null ? Flag.Tombstone : 0);
      const { key } = content;
      const partition = key === null || topic.partitions === 0 ? 0 : partitionOf(key, 0, key.length, topic.partitions);
      entry.writeUInt32BE(partition, AT.partition);
      entry.writeDoubleBE(row.createdAtMs < 0 ? NaN : row.createdAtMs, AT.place);
      // Where ids are no integers the moment of creation has to do.
      entry.writeBigUInt64BE(
        table.kind === 'integer' ? (id as bigint) : BigInt(Math.max(0, row.createdAtMs)),
        AT.order,
      );
      into.add(entry[AT.identity], entry);
    }
    progress(gathered.rows, last);
  }
  return gathered;
}

function note(topic: RowTopic, createdMs: number): void {
  topic.rows++;
  topic.oldestMs = Math.min(topic.oldestMs, createdMs < 0 ? -Infinity : createdMs);
}

export function idOfRow({ idBytes, idLow, idHigh }: OutboxRow): RowId {
  if (idBytes.form !== Form.Null) return idBytes.buffer.toString('hex', idBytes.start, idBytes.end);
  return (BigInt(idHigh) << 32n) | BigInt(idLow);
}

function textOf({ buffer, start, end }: OutboxRow['topic']): string {
  return buffer.toString('utf8', start, end);
}
