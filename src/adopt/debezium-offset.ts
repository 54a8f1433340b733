import { z } from 'zod';
import type { Position } from '../model/position.ts';
import type { MapEntry } from './java-map.ts';

/** Where a Debezium connector for MySQL or MariaDB had come to, as it committed it. */
export interface DebeziumOffset {
  readonly connector: string;
  /** `topic.prefix` of the connector, which it calls its server. */
  readonly server: string;
  /** Where a transaction begins. */
  readonly position: Position;
  /** Executed before that transaction; null where GTIDs are off. */
  readonly gtids: string | null;
  /** It was in the middle of that transaction: the part that it has sent is sent again. */
  readonly inTransaction: boolean;
}

/** What is wrong with the offsets, for people. */
export class OffsetProblem extends Error {
  override readonly name = 'OffsetProblem';
}

const envelope = z.object({ schema: z.unknown(), payload: z.unknown() });

const keySchema = z.tuple([z.string(), z.looseObject({ server: z.string() })]);

const valueSchema = z.looseObject({
  file: z.string().min(1),
  pos: z.int().nonnegative(),
  gtids: z.string().nullish(),
  row: z.int().nullish(),
  event: z.int().nullish(),
  snapshot: z.union([z.boolean(), z.string()]).nullish(),
});

/** The offset of one connector: the one named, or the only one there. Throws an `OffsetProblem`. */
export function pickOffset(entries: readonly MapEntry[], connector: string | null): DebeziumOffset {
  const found = entries.flatMap(({ key, value }) => {
    const name = keySchema.safeParse(jsonOf(key));
    if (!name.success || (connector !== null && name.data[0] !== connector)) return [];
    return [{ connector: name.data[0], server: name.data[1].server, value }];
  });
  const names = found.map((each) => each.connector).join(', ');
  if (found.length === 0) {
    throw new OffsetProblem(connector === null ? 'there is no offset in it' : `it has no offset of ${connector}`);
  }
  if (found.length > 1) throw new OffsetProblem(`it has offsets of several connectors (${names}): --connector NAME`);
  const [{ server, connector: name, value }] = found;
  if (value === null) throw new OffsetProblem(`the offset of ${name} was deleted`);
  const parsed = valueSchema.safeParse(jsonOf(value));
  if (!parsed.success) throw new OffsetProblem(`the offset of ${name} has no file and pos: not one for MySQL`);
  const { file, pos, gtids, row, event, snapshot } = parsed.data;
  if (snapshot !== undefined && snapshot !== null && snapshot !== false && snapshot !== 'false') {
    throw new OffsetProblem(`${name} was in its snapshot: what it had sent is not known`);
  }
  const set = gtids?.replaceAll(/\s/g, '') ?? '';
  return {
    connector: name,
    server,
    position: { file, offset: pos },
    gtids: set === '' ? null : set,
    inTransaction: (row ?? 0) > 0 || (event ?? 0) > 0,
  };
}

/** The last of each key counts, as a compacted topic has it. */
export function lastOfEach(records: Iterable<MapEntry>): MapEntry[] {
  const last = new Map<string, MapEntry>();
  for (const record of records) if (record.key !== null) last.set(record.key.toString('hex'), record);
  return [...last.values()];
}

/** Connect writes keys and values with or without their schema around them. */
function jsonOf(bytes: Buffer | null): unknown {
  try {
    const json: unknown = bytes === null ? null : JSON.parse(bytes.toString());
    const enveloped = envelope.safeParse(json);
    return enveloped.success ? enveloped.data.payload : json;
  } catch {
    return null;
  }
}
