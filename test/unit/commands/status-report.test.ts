import { describe, expect, test } from 'vitest';
import { statusReport, statusSchema, statusText } from '../../../src/commands/status-report.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
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

function facts(waiting: OutboxFacts['waiting'], more: Partial<StatusFacts> = {}): StatusFacts {
  return {
    server: { uuid: 'uuid', version: '8.4.3' },
    leader: { owner: 'relay-1:4711', epoch: 1203 },
    checkpoint: { file: 'binlog.000127', offset: 88_213_004, savedMsAgo: 100 },
    head: { file: 'binlog.000127', offset: 88_525_390 },
    behindBytes: 312_386,
    outboxes: [{ table: 'app.outbox', waiting }],
    ...more,
  };
}

const waiting = (pending: number, oldestPendingMs: number | null): OutboxFacts['waiting'] => ({
  pending,
  oldestPendingMs,
  delayed: 12,
  failed: 3,
});
const old = { checkpoint: { file: 'binlog.000127', offset: 4, savedMsAgo: 90_000 } };

describe('the state of a relay', () => {
  test.each([
    ['FLOWING', facts(waiting(0, null))],
    ['FLOWING', facts(waiting(1_204, 200))],
    ['CATCHING UP', facts(waiting(50_000, 60_000))],
    ['STUCK', facts(waiting(1, 60_000), old)],
    ['FLOWING', facts(waiting(0, null), old)],
    ['FLOWING', facts(null)],
    ['STOPPED', facts(waiting(5, 60_000), { leader: null })],
    ['STUCK', facts(waiting(5, 60_000), { checkpoint: null })],
  ] as const)('%s', (state, from) => expect(statusReport(from, settings).state).toBe(state));
});

test('L3 lag is the age of the oldest row that is due, whatever the position says', () => {
  const atHead = { head: { file: 'binlog.000127', offset: 88_213_004 }, behindBytes: 0 };
  const report = statusReport(facts(waiting(7, 1_800_000), { ...atHead, ...old }), settings);
  expect(report).toMatchObject({ state: 'STUCK', lagMs: 1_800_000 });
  expect(statusText(report).split('\n')[1]).toBe('lag       30 m 0 s, 7 rows, 0 B of binlog');
});

test('the report is what its schema says, and reads as the verdict first', () => {
  const report = statusReport(facts(waiting(1_204, 200)), settings);
  expect(statusSchema.parse(JSON.parse(JSON.stringify(report)))).toEqual(report);
  expect(statusText(report)).toBe(
    [
      'FLOWING   orders on db1:3306 (8.4.3), leader relay-1:4711, epoch 1,203',
      'lag       0.2 s, 1,204 rows, 312 kB of binlog',
      'position  checkpoint binlog.000127:88,213,004 (saved 0.1 s ago), head binlog.000127:88,525,390',
      'outbox    app.outbox   pending 1,204 (oldest 0.2 s)   delayed 12   failed 3',
    ].join('\n'),
  );
});

test('a relay that does not run says what to do; unknown is not zero', () => {
  const stopped = statusText(
    statusReport(facts(null, { leader: null, checkpoint: null, behindBytes: null }), settings),
  );
  expect(stopped).toContain('STOPPED');
  expect(stopped).toContain('lag       unknown (no status column), 0 rows, unknown of binlog');
  expect(stopped.endsWith('next      cdc-relay run')).toBe(true);
});
