import { describe, expect, test } from 'vitest';
import type { BinlogSource } from '../../src/binlog/binlog-source.ts';
import { type Fault, RelayError } from '../../src/model/fault.ts';
import { type Checkpoint, formatGtid } from '../../src/model/position.ts';
import type { Landmark } from '../../src/model/source.ts';
import { BinlogBed, checkpointAt, insertOf, plain } from '../integration/binlog/binlog-bed.ts';
import type { DatabaseServer } from '../stack/handles.ts';
import { resetLogs } from '../stack/log-head.ts';
import { startMariadb, startMysql } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

interface Read {
  readonly keys: readonly (string | null)[];
  /** Behind the fifth transaction. */
  readonly at: Checkpoint;
  readonly fault: Fault | null;
}

function behind({ end, gtid, commitMicros, beginOffset }: Landmark): Checkpoint {
  return {
    position: end,
    gtidSet: null,
    lastBegin: { file: end.file, offset: beginOffset },
    lastGtid: gtid === null ? null : formatGtid(gtid),
    lastCommitMicros: commitMicros,
  };
}

/** Until `rows` have come, or the stream ends with a fault. */
async function read(source: BinlogSource, from: Checkpoint, rows: number): Promise<Read> {
  const keys: (string | null)[] = [];
  let at = from;
  try {
    for await (const { transactions } of source.stream(from, AbortSignal.timeout(60_000))) {
      for (const transaction of transactions) {
        keys.push(...(await plain(transaction)).rows.map(({ key }) => key));
        if (keys.length === 5) at = behind(transaction);
      }
      if (keys.length >= rows) break;
    }
    return { keys, at, fault: null };
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    return { keys, at, fault: error.fault };
  }
}

const NO_GTIDS = { flags: ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'] };
const PACKED = { flags: ['--binlog-transaction-compression=ON'] };

describe.each<[string, () => Promise<DatabaseServer>]>([
  ['MySQL', () => startMysql()],
  ['MySQL with compressed transactions', () => startMysql(PACKED)],
  ['MySQL without GTIDs', () => startMysql(NO_GTIDS)],
  ['MariaDB', () => startMariadb()],
])('S2 %s: the same transactions once more behind a reset', (_, start) => {
  test('are not those that were read', async () => {
    await using bed = await BinlogBed.open(await start());
    const insert = async (from: number, to: number): Promise<void> => {
      for (let n = from; n <= to; n++) await bed.sql(insertOf(`k${n}`));
    };
    await resetLogs((text) => bed.sql(text));
    const begin = await bed.head();
    await insert(1, 5);
    const first = await read(bed.source(), checkpointAt(begin), 5);
    expect(first).toMatchObject({ fault: null, keys: ['k1', 'k2', 'k3', 'k4', 'k5'] });
    expect(first.at.position).toEqual(await bed.head());

    // In the log that it was read in, it goes on behind it.
    await insert(6, 7);
    expect(await read(bed.source(), first.at, 2)).toMatchObject({ fault: null, keys: ['k6', 'k7'] });

    // MariaDB knows the second of a commit only.
    const second = (): number => Math.floor(Date.now() / 1_000);
    const readIn = second();
    await until(() => second() > readIn + 1, { withinMs: 20_000, what: 'another second' });
    await resetLogs((text) => bed.sql(text));
    await insert(1, 7);
    const again = await read(bed.source(), checkpointAt(begin), 7);
    const saved = { ...again.at, lastCommitMicros: first.at.lastCommitMicros };
    // Packed by compression they may be a few bytes longer or shorter.
    expect(Math.abs(saved.position.offset - first.at.position.offset)).toBeLessThan(100);
    expect(saved.lastGtid).toBe(first.at.lastGtid);
    const { fault, keys } = await read(bed.source(), saved, 2);
    expect(keys).toEqual([]);
    expect(fault).toMatchObject({ code: 'BINLOG_POSITION_UNUSABLE', disposition: 'halt' });
    expect(fault?.detail).toMatch(/begins there: the server was reset, or restored/);
  });
});
