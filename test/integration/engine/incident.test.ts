import { expect, test } from 'vitest';
import { createBinlogSource } from '../../../src/binlog/binlog-source.ts';
import { incident } from '../../../src/binlog/undecodable.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import { createPublisher } from '../../../src/kafka/publisher.ts';
import { systemClock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Source } from '../../../src/model/source.ts';
import { runRelay } from '../../../src/relay/relay.ts';
import { MysqlStore } from '../../../src/store/mysql-store.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';

test('B10 the server says that it lost events: told loudly, what they were comes from the table, in order', async () => {
  await using bed = await RelayBed.open({ config: { sweep: { intervalMs: 100 } } });
  const config = configSchema.parse(bed.config());
  const settings = settingsOf(complete(config));
  const logged: { event: string; fields: Readonly<Record<string, unknown>> | undefined }[] = [];
  const write = (event: string, fields?: Readonly<Record<string, unknown>>): void =>
    void logged.push({ event, fields });
  const log: Log = { debug: () => undefined, info: write, warn: write, error: write, child: () => log };
  const real = createBinlogSource({ ...settings, maxTransactionBytes: 1 << 20, log });
  let loses = false;
  // A real server writes the event only when its disk fails in the midst of a commit.
  const source: Source = {
    async *stream(from, signal, tolerant) {
      for await (const group of real.stream(from, signal, tolerant)) {
        const lost = loses && group.transactions.length > 0 ? group.transactions : [];
        const transactions = lost.map((each) => ({
          ...{ end: each.end, beginOffset: each.beginOffset, gtid: each.gtid, commitMicros: each.commitMicros },
          ...{ skipped: each.skipped, rows: () => each.rows(), pieces: null },
          undecodable: incident(`${each.end.file}:${each.beginOffset}`),
        }));
        yield lost.length === 0 ? group : { ...group, transactions };
      }
    },
  };
  const store = new MysqlStore(settings, systemClock, log);
  const publisher = createPublisher(settings.kafka, log);
  const stop = new AbortController();
  const deps = { settings, source, publisher, store, clock: systemClock, log, duties: [] };
  const ended = runRelay(deps, stop.signal);
  try {
    await until(() => logged.some(({ event }) => event === 'tail-flowing'), { withinMs: 20_000, what: 'a tail' });
    const rows = { topic: bed.servers.topic('orders'), count: 20, aggregates: 3, perTransaction: 1 };
    await insertRows(bed.servers.pool, rows);
    await bed.retired();
    loses = true;
    await insertRows(bed.servers.pool, rows);
    await bed.retired();
    loses = false;
    await insertRows(bed.servers.pool, rows);
    await bed.retired();
  } finally {
    stop.abort();
    expect(await ended).toBeNull();
    await publisher.close(1_000);
    await store.close();
  }
  expect(logged).toContainEqual({
    event: 'transaction-left-to-sweep',
    fields: expect.objectContaining({ code: 'BINLOG_INCIDENT' }) as unknown,
  });
  expect(await bed.expectDelivered()).toMatchObject({ committed: 60, lost: 0, reordered: 0, duplicates: 0 });
});
