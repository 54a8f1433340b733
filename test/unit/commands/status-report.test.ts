import { describe, expect, test } from 'vitest';
import type { RelayAnswer } from '../../../src/commands/relay-answer.ts';
import { statusReport, type StatusReport, statusSchema } from '../../../src/commands/status-report.ts';
import { statusText } from '../../../src/commands/status-text.ts';
import { needsSomebody, passedThresholds, thresholdsOf } from '../../../src/commands/status-thresholds.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import type { RelayStatus } from '../../../src/http/status-view.ts';
import type { ParkedScope } from '../../../src/store/parked-facts.ts';
import type { OutboxFacts, StatusFacts } from '../../../src/store/status.ts';

const settings = settingsOf(
  complete(
    configSchema.parse({
      name: 'orders',
      mysql: { host: 'db1', user: 'relay', password: '', database: 'app' },
      kafka: { brokers: ['broker1:9092'] },
      outboxes: [{ table: 'app.outbox' }],
    }),
  ),
);

const DAY_MS = 86_400_000;
const file = 'binlog.000127';
const absent: RelayAnswer = { as: 'absent', address: '127.0.0.1:9465' };

function facts(waiting: OutboxFacts['waiting'], more: Partial<StatusFacts> = {}): StatusFacts {
  return {
    server: { uuid: 'uuid', version: '8.4.3' },
    leader: { owner: 'relay-1:4711', epoch: 1203 },
    standbys: 1,
    paused: null,
    checkpoint: { file, offset: 88_213_004, savedMsAgo: 100, serverUuid: 'uuid', lastCommitMs: null },
    head: { file, offset: 88_525_390 },
    purge: { inMs: 6 * DAY_MS + 79_200_000, expireMs: 7 * DAY_MS, keptBytes: 41e9, behindBytes: 312_386 },
    outboxes: [{ table: 'app.outbox', waiting }],
    parked: { parked: [], total: 0, oldestFreeMs: null },
    jobs: [],
    ...more,
  };
}

const waiting = (pendingRows: number, oldestPendingMs: number | null): OutboxFacts['waiting'] => ({
  ...{ pendingRows, oldestPendingMs, delayedRows: 12, nextDelayedInMs: 40_000, processingRows: 0 },
  ...{ failedRows: 3, newestFailedMs: 240_000, newestFailedCode: 'MESSAGE_TOO_LARGE' },
});
const none: OutboxFacts['waiting'] = {
  ...{ pendingRows: 0, oldestPendingMs: null, delayedRows: 0, nextDelayedInMs: null, processingRows: 0 },
  ...{ failedRows: 0, newestFailedMs: null, newestFailedCode: null },
};
const pair: ParkedScope = {
  ...{ kind: 'pair', topic: 'orders', partition: 0, key: 'agg-1042', reason: 'KAFKA_CORRUPT_MESSAGE', attempts: 7 },
  ...{ sinceMs: 842_000, dueInMs: 18_000, row: null, rowsWaiting: 37 },
};
const old = { checkpoint: { ...facts(none).checkpoint!, savedMsAgo: 90_000 } };

function answer(more: Partial<RelayStatus> = {}): RelayAnswer {
  const status: RelayStatus = {
    ...{ version: 1, relay: 'orders', pid: 4711, state: 'FLOWING', stateForMs: 60_000, upMs: 273_600_000 },
    ...{ ready: true, notReady: [], stuck: [], lagMs: 30, epoch: 1203, leader: null, standbys: 1, paused: null },
    ...{ purge: null, rate: { nowRowsPerSecond: 8_412.3, over15MinRowsPerSecond: 7_990 }, jobs: [], fault: null },
    ...{ lastError: { code: 'KAFKA_TIMEOUT', agoMs: 182_000 }, outboxes: null, limits: [], head: null, term: null },
    rows: { byTail: 0, bySweep: 0, failed: 0, retried: 0 },
    ...more,
  };
  return { as: 'answered', address: '127.0.0.1:9465', status };
}

const report = (from: StatusFacts | null, says: RelayAnswer = absent): StatusReport =>
  statusReport(from, says, settings);
const text = (from: StatusReport): string => statusText(from, { ascii: true, columns: undefined });

describe('the state of a relay by the word of the database alone', () => {
  test.each([
    ['FLOWING', facts(none)],
    ['FLOWING', facts(waiting(1_204, 200))],
    ['CATCHING UP', facts(waiting(50_000, 60_000))],
    ['STUCK', facts(waiting(1, 60_000), old)],
    ['FLOWING', facts(none, old)],
    ['FLOWING', facts(null)],
    ['STOPPED', facts(waiting(5, 60_000), { leader: null })],
    ['STOPPED', facts(none, { leader: null, paused: { sinceMs: 1, by: 'ann@ops' } })],
    ['PAUSED', facts(waiting(5, 60_000), { paused: { sinceMs: 1, by: 'ann@ops' } })],
    ['STUCK', facts(waiting(5, 60_000), { checkpoint: null })],
    ['UNKNOWN', null],
  ] as const)('%s', (state, from) => {
    expect(report(from)).toMatchObject({ state, source: 'database', rate: null });
  });

  test('what parked pairs hold back is no lag; what waits beside them is', () => {
    const parked = (oldestFreeMs: number | null) => ({ parked: { parked: [pair], total: 1, oldestFreeMs }, ...old });
    expect(report(facts(waiting(38, 842_000), parked(200)))).toMatchObject({ state: 'FLOWING', lagMs: 200 });
    expect(report(facts(waiting(38, 842_000), parked(60_000)))).toMatchObject({ state: 'STUCK', lagMs: 60_000 });
    expect(report(facts(waiting(90_000, 842_000), parked(null))).lagMs).toBeNull();
  });
});

describe('whose word is taken', () => {
  test.each([
    ['of the leader', answer({ state: 'SWEEP ONLY' }), facts(none), 'SWEEP ONLY', 'leader'],
    ['not of a standby', answer({ state: 'STANDBY', epoch: null }), facts(none), 'FLOWING', 'standby'],
    ['not of one that led before', answer({ state: 'STUCK', epoch: 1202 }), facts(none), 'FLOWING', 'not-leading'],
    [
      'of one that cannot lead',
      answer({ state: 'STUCK', epoch: null, fault: 'KAFKA_UNREACHABLE' }),
      facts(none, { leader: null }),
      'STUCK',
      'not-leading',
    ],
    ['of nobody where the database is away', answer(), null, 'UNKNOWN', 'leader'],
    [
      'of none that does not answer',
      { as: 'unclear', address: 'a:1', why: 'x' } as const,
      facts(none),
      'FLOWING',
      'unclear',
    ],
  ] as const)('%s', (_, says, from, state, as) => {
    expect(report(from, says)).toMatchObject({ state, relay: { as } });
  });
});

test('a full report: the verdict, the facts, what to do; it is what its schema says', () => {
  const full: StatusReport = {
    ...report(
      facts(waiting(1_204, 200), {
        paused: { sinceMs: 400, by: 'ann@ops' },
        parked: {
          parked: [
            { ...pair, kind: 'topic-partition', key: null, partition: 3, rowsWaiting: null },
            pair,
            { ...pair, dueInMs: null, row: { outbox: 'app.outbox', id: '81' }, rowsWaiting: 1 },
          ],
          total: 9,
          oldestFreeMs: 0,
        },
        jobs: [
          ...[
            {
              id: '12',
              kind: 'republish',
              state: 'running',
              done: 111_240,
              total: 182_344,
              startedMsAgo: 24_000,
            } as const,
          ],
          ...[{ id: '13', kind: 'reconcile', state: 'queued', done: null, total: null, startedMsAgo: null } as const],
        ],
      }),
      answer({
        ...{ state: 'STUCK', stuck: [{ part: 'lane', detail: 'orders/3', stuckMs: 14_000 }], lagMs: 75_000 },
        limits: [{ outbox: 'app.outbox', overRows: true, overAge: false }],
      }),
    ),
  };
  const passed = passedThresholds(full, thresholdsOf({ maxLag: '60s', maxFailed: '0' }));
  expect(statusSchema.parse(JSON.parse(JSON.stringify({ ...full, passed })))).toEqual({ ...full, passed });
  expect(text({ ...full, passed })).toBe(
    [
      'STUCK     orders on db1:3306 (8.4.3), leader relay-1:4711 (up 3 d 4 h), epoch 1,203, 1 standby',
      'passed    lag 1 m 15 s, allowed 1 m 0 s (--max-lag)',
      'passed    3 failed, allowed 0 (--max-failed)',
      'stuck     lane orders/3 for 14 s',
      'paused    0.4 s ago by ann@ops   -> cdc-relay resume',
      'lag       1 m 15 s, 1,204 rows, 312 kB of binlog',
      'position  checkpoint binlog.000127:88,213,004 (saved 0.1 s ago), head binlog.000127:88,525,390',
      'purge     in 6 d 22 h at the earliest, 41.0 GB of older binlogs go first',
      'rate      8,412 rows/s now, 7,990 over 15 min',
      'outbox    app.outbox   pending 1,204 (oldest 0.2 s)   delayed 12 (next in 40 s)   failed 3',
      'parked    orders/3   for 14 m 2 s   KAFKA_CORRUPT_MESSAGE   next try in 18 s',
      '          orders / agg-1042   for 14 m 2 s   KAFKA_CORRUPT_MESSAGE   next try in 18 s   37 rows wait',
      '          orders / agg-1042   for 14 m 2 s   KAFKA_CORRUPT_MESSAGE   ' +
        'until somebody acts -> cdc-relay failed show 81 --outbox app.outbox   1 row waits',
      '          and 6 more',
      'failed    3 rows, the last one due 4 m 0 s ago: MESSAGE_TOO_LARGE   -> cdc-relay failed list',
      'job       12 republish running   111,240 of 182,344 rows (61 %)   for 24 s   -> cdc-relay resync show 12',
      'job       13 reconcile queued   -> cdc-relay resync show 13',
      'limit     app.outbox is over its limit of rows',
      'error     the last one 3 m 2 s ago: KAFKA_TIMEOUT',
    ].join('\n'),
  );
});

test('where a terminal ends its lines go on below; nothing in it writes to the terminal', () => {
  const evil = '\u001b]0;x\u0007\u202eevil';
  const from = report(
    facts(waiting(1, 200), {
      leader: { owner: evil, epoch: 1 },
      paused: { sinceMs: 1, by: evil },
      parked: { parked: [{ ...pair, topic: evil, key: evil, reason: evil, row: null }], total: 1, oldestFreeMs: 0 },
      outboxes: [{ table: evil, waiting: { ...waiting(1, 200)!, newestFailedCode: evil } }],
    }),
    { as: 'unclear', address: evil, why: evil },
  );
  for (const style of [
    { ascii: true, columns: undefined },
    { ascii: false, columns: 80 },
  ] as const) {
    const shown = statusText({ ...from, lastError: { code: evil, agoMs: 1 } }, style);
    // eslint-disable-next-line no-control-regex -- that is what is looked for
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(shown).toContain('\\x1b]0;x\\x07');
  }
  const narrow = statusText(report(facts(waiting(1_204, 200))), { ascii: false, columns: 60 }).split('\n');
  expect(narrow.slice(0, 2)).toEqual([
    'FLOWING   orders on db1:3306 (8.4.3),',
    '          leader relay-1:4711, epoch 1,203, 1 standby',
  ]);
  const at = narrow.findIndex((line) => line.startsWith('outbox'));
  expect(narrow.slice(at, at + 2)).toEqual([
    'outbox    app.outbox   pending 1,204 (oldest 0.2 s)',
    '          delayed 12 (next in 40 s)   failed 3',
  ]);
});

test('L3 lag is the age of the oldest row that is due, whatever the position says', () => {
  const atHead = { head: { file, offset: 88_213_004 } };
  const stuck = report(
    facts(waiting(7, 1_800_000), { ...atHead, ...old, purge: { ...facts(none).purge!, behindBytes: 0 } }),
  );
  expect(stuck).toMatchObject({ state: 'STUCK', lagMs: 1_800_000 });
  expect(text(stuck).split('\n')[1]).toBe('lag       30 m 0 s, 7 rows, 0 B of binlog');
});

test('a relay that does not run says what to do; unknown is not zero; many are told as at least so many', () => {
  const stopped = text(report(facts(null, { leader: null, standbys: 0, checkpoint: null, purge: null, head: null })));
  expect(stopped).toContain('STOPPED   orders on db1:3306 (8.4.3), no leader, no standby');
  expect(stopped).toContain('lag       unknown (no status column), 0 rows, unknown of binlog');
  expect(stopped).toContain('position  checkpoint none yet, head unknown');
  expect(stopped.endsWith('next      cdc-relay run')).toBe(true);
  expect(text(report(facts(waiting(100_000, 900))))).toContain('pending 100,000+ (oldest 0.9 s)');
  const gone = { inMs: 0, expireMs: DAY_MS, keptBytes: null, behindBytes: null };
  expect(text(report(facts(none, { purge: gone })))).toContain("purge     the checkpoint's binlog is gone");
  const away = text(report(null, answer({ state: 'UNKNOWN' })));
  expect(away).toBe(
    [
      'UNKNOWN   orders on db1:3306: the database cannot be reached',
      'error     the last one 3 m 2 s ago: KAFKA_TIMEOUT',
      'relay     the leader at 127.0.0.1:9465 says UNKNOWN',
    ].join('\n'),
  );
});

describe('thresholds', () => {
  const passed = (from: StatusReport, options: Record<string, string>): string[] =>
    passedThresholds(from, thresholdsOf(options));

  test.each([
    ['lag', { maxLag: '60s' }, facts(waiting(1, 60_001)), 1],
    ['no lag', { maxLag: '60s' }, facts(waiting(1, 60_000)), 0],
    ['an unknown lag', { maxLag: '60s' }, facts(null), 1],
    ['failed', { maxFailed: '2' }, facts(waiting(1, 0)), 1],
    ['so many failed', { maxFailed: '3' }, facts(waiting(1, 0)), 0],
    ['parked', { maxParked: '0' }, facts(none, { parked: { parked: [pair], total: 1, oldestFreeMs: 0 } }), 1],
    ['headroom', { minHeadroom: '7d' }, facts(none), 1],
    ['enough headroom', { minHeadroom: '6d' }, facts(none), 0],
    ['unknown headroom', { minHeadroom: '1d' }, facts(none, { purge: null }), 1],
    [
      'binlogs that stay',
      { minHeadroom: '1d' },
      facts(none, { purge: { inMs: null, expireMs: null, keptBytes: 0, behindBytes: 0 } }),
      0,
    ],
    ['a database that is away', { maxLag: '60s', minHeadroom: '1d' }, null, 2],
  ] as const)('%s', (_, options, from, count) => expect(passed(report(from), options)).toHaveLength(count));

  test.each([
    ['STUCK is never good', facts(waiting(1, 60_000), old), {}, true],
    ['STUCK is never good, whatever is allowed', facts(waiting(1, 60_000), old), { maxLag: '1h' }, true],
    ['stopped with rows waiting', facts(waiting(1, 500), { leader: null }), {}, true],
    ['stopped for less than is allowed', facts(waiting(1, 500), { leader: null }), { maxLag: '60s' }, false],
    ['stopped with nothing waiting', facts(none, { leader: null }), {}, false],
    ['flowing', facts(waiting(1, 500)), {}, false],
    ['paused', facts(waiting(1, 500), { paused: { sinceMs: 1, by: '' } }), {}, false],
  ] as const)('%s', (_, from, options, needs) => {
    const thresholds = thresholdsOf(options);
    const plain = report(from);
    expect(needsSomebody({ ...plain, passed: passedThresholds(plain, thresholds) }, thresholds)).toBe(needs);
  });

  test('a threshold that is none is wrong usage', () => {
    expect(() => thresholdsOf({ maxLag: '60' })).toThrow('--max-lag');
    expect(() => thresholdsOf({ maxFailed: '-1' })).toThrow('--max-failed');
  });
});
