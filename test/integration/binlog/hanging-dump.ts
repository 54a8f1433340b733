import { expect } from 'vitest';
import type { Log } from '../../../src/model/log.ts';
import type { Position } from '../../../src/model/position.ts';
import { until } from '../../stack/until.ts';
import { type BinlogBed, checkpointAt, insertOf, silent } from './binlog-bed.ts';

/** Far more than the sockets' buffers take. */
const MEGABYTES = 32;
const ROW_OF_A_MEGABYTE = `INSERT INTO outbox (topic, aggregate_id, payload)
  VALUES ('orders', 'bulk', JSON_QUOTE(REPEAT('x', 1000000)))`;

/**
 * One stream stands still, as that of a frozen process does, until the server hangs in a write to it. The next one with
 * its replica id must begin all the same, and the server must be rid of the one before. On a server of the test's own.
 */
export async function expectNextDumpBegins(bed: BinlogBed): Promise<void> {
  const dumps = async (): Promise<Map<string, string>> => {
    const rows = await bed.sql(
      "SELECT ID AS id, STATE AS state FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%' OR COMMAND = 'Killed'",
    );
    return new Map(rows.map((row) => [String(row['id']), String(row['state'])]));
  };
  const abort = new AbortController();
  const others = await dumps();
  const ended: unknown[] = [];
  const log: Log = {
    ...silent,
    info: (event, fields) => {
      if (event === 'earlier-dump-ended') ended.push(fields?.['connectionId']);
    },
  };
  const stream = (from: Position) =>
    bed.source({ log }).stream(checkpointAt(from), abort.signal)[Symbol.asyncIterator]();
  const frozen = stream(await bed.head());
  const next: ReturnType<typeof stream>[] = [];
  try {
    await bed.sql(insertOf('first'));
    await frozen.next();
    for (let n = 0; n < MEGABYTES; n++) await bed.sql(ROW_OF_A_MEGABYTE);
    const [hanging] = await until(
      async () => [...(await dumps())].find(([id, state]) => !others.has(id) && /^(?:Writing|Sending) /.test(state)),
      { withinMs: 20_000, what: 'a dump that hangs in a write' },
    );
    next.push(stream(await bed.head()));
    await bed.sql(insertOf('behind'));
    // A write to who reads nothing ends after `net_write_timeout`, a minute.
    const beganMs = performance.now();
    await next[0].next();
    expect(performance.now() - beganMs).toBeLessThan(20_000);
    await until(async () => !(await dumps()).has(hanging), { withinMs: 20_000, what: 'the end of the one before' });
    await until(() => ended.length > 0, { withinMs: 20_000, what: 'a line of the log about it' });
  } finally {
    abort.abort();
    for (const each of [frozen, ...next]) await each.return?.().catch(() => undefined);
  }
}
