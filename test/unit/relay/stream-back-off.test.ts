import { afterEach, expect, test, vi } from 'vitest';
import type { Clock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Checkpoint } from '../../../src/model/position.ts';
import type { Publisher } from '../../../src/model/publisher.ts';
import type { Source, TransactionGroup } from '../../../src/model/source.ts';
import type { Leader, Store } from '../../../src/model/store.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import { Term } from '../../../src/relay/term.ts';

afterEach(() => vi.restoreAllMocks());

const from: Checkpoint = {
  position: { file: 'binlog.000001', offset: 4 },
  gtidSet: null,
  lastGtid: null,
  lastCommitMicros: null,
};
const group: TransactionGroup = { transactions: [], reached: from.position, skipped: [], worthSaving: false };

test('I3 a stream that is lost as soon as it is there is begun again less and less often; after a good one, soon', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(1);
  let nowMs = 0;
  const waits: number[] = [];
  const clock: Clock = {
    nowMs: () => nowMs,
    after(delayMs, call) {
      waits.push(delayMs);
      nowMs += delayMs;
      queueMicrotask(call);
      return () => undefined;
    },
  };
  const stop = new AbortController();
  let streams = 0;
  const source: Source = {
    async *stream() {
      streams++;
      yield await Promise.resolve(group);
      if (streams === 9) nowMs += 6_000;
      if (streams === 11) stop.abort();
      throw fault('BINLOG_CONNECTION_LOST', 'retry', 'kicked');
    },
  };
  const config = configSchema.parse({
    name: 'term',
    mysql: { host: 'db1', user: 'relay', password: '', database: 'app' },
    kafka: { brokers: ['broker1:9092'] },
    outboxes: [{ table: 'outbox', retire: 'keep' }],
  });
  const silent: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
    child: () => silent,
  };
  const deps = {
    settings: settingsOf(complete(config)),
    source,
    // No row comes: neither is asked for anything.
    publisher: {} as Publisher,
    store: {} as Store,
    clock,
    log: silent,
  };
  const leader = { epoch: 1, lost: new AbortController().signal, maySend: () => true } as unknown as Leader;
  const facts = { version: '8.4.0', flavour: 'mysql', serverUuid: 'uuid', gtidMode: false } as const;
  expect(await new Term(deps, leader, facts, from).run(stop.signal)).toEqual({ as: 'stopped' });
  expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 100, 200]);
});
