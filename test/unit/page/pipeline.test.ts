import { expect, test } from 'vitest';
import type { RelayStatus } from '../../../src/http/status-view.ts';
import { partsOf } from '../../../src/page/pipeline.ts';
import { placesIn } from '../../../src/page/picture-places.ts';
import { sentenceOf, toneOf } from '../../../src/page/states.ts';

const at = { file: 'binlog.000001', offset: 4 };
const FLOWING: RelayStatus = {
  ...{
    version: 1,
    relay: 'orders',
    pid: 1,
    state: 'FLOWING',
    stateForMs: 1_000,
    upMs: 1_000,
    ready: true,
    notReady: [],
  },
  ...{ stuck: [], lagMs: 20, epoch: 1, leader: null, standbys: 0, paused: null, purge: null, jobs: [], fault: null },
  ...{ lastError: null, outboxes: null, limits: [], head: at },
  rate: { nowRowsPerSecond: 10, over15MinRowsPerSecond: 10 },
  term: {
    ...{ source: 'tail', routed: at, checkpoint: at, high: at, openTransactions: 0, unflushedRows: 0, lockedRows: 0 },
    pool: { takenBytes: 0, maxBytes: 1, sourceWaits: false },
    lanes: { inUse: 3, sending: 1, held: 0 },
    parked: { pair: 0, 'topic-partition': 0, topic: 0, everything: 0 },
    scopes: [],
  },
  rows: { byTail: 7, bySweep: 2, failed: 0, retried: 0 },
};

const stuckAt = (part: string, detail: string | null, more: Partial<RelayStatus> = {}) => {
  const status: RelayStatus = { ...FLOWING, state: 'STUCK', stuck: [{ part, detail, stuckMs: 20_000 }], ...more };
  return partsOf(status).filter(({ tone }) => tone === 'stuck');
};

test.each([
  ['kafka', null, 'kafka'],
  ['lane', 'orders/2', 'lanes'],
  ['tail', null, 'tail'],
  ['sweep', null, 'sweep'],
  ['flush', null, 'marks'],
  ['start', 'BINLOG_NOT_PERMITTED', 'tail'],
  ['start', 'KAFKA_UNREACHABLE', 'kafka'],
  ['start', 'MYSQL_SCHEMA', 'mysql'],
  ['a part of tomorrow', null, 'mysql'],
])('what is stuck is marked where it is: %s %s in %s', (part, detail, place) => {
  expect(stuckAt(part, detail).map(({ id }) => id)).toEqual([place]);
});

test('the cause is what is known: of the part, of the term, the last error where it is not of long ago', () => {
  expect(stuckAt('lane', 'orders/2')[0].stuck).toMatchObject({ cause: 'orders/2', forMs: 20_000 });
  const lastError = { code: 'KAFKA_TIMEOUT', agoMs: 3_000 };
  expect(stuckAt('kafka', null, { lastError })[0].stuck?.cause).toBe('KAFKA_TIMEOUT');
  expect(stuckAt('kafka', null, { lastError: { ...lastError, agoMs: 900_000 } })[0].stuck?.cause).toBe(
    'no acknowledgement',
  );
});

test('each part has one number; what this relay does not do has none', () => {
  expect(partsOf(FLOWING).map(({ id, number }) => `${id} ${number}`)).toEqual([
    ...['mysql ?', 'tail 7', 'sweep 2', 'lanes 1', 'kafka 10', 'marks 0'],
  ]);
  const standby = partsOf({ ...FLOWING, state: 'STANDBY', term: null, epoch: null });
  expect(standby[0].tone).toBe('idle');
  expect(standby.slice(1).map(({ number, tone }) => `${number} ${tone}`)).toEqual(Array(5).fill('– off'));
  const swept = partsOf({ ...FLOWING, state: 'SWEEP ONLY', term: { ...FLOWING.term!, source: 'sweep' } });
  expect(swept.find(({ id }) => id === 'tail')).toMatchObject({ tone: 'off', unit: 'binlog not read' });
});

test('a database that does not answer is marked', () => {
  const parts = partsOf({ ...FLOWING, state: 'UNKNOWN', fault: 'MYSQL_UNREACHABLE' });
  expect(parts[0]).toMatchObject({ tone: 'stuck', stuck: { cause: 'MYSQL_UNREACHABLE' } });
});

test('STUCK is never good, and says what since when', () => {
  expect(toneOf('STUCK')).toBe('bad');
  expect(toneOf('something new')).toBe('off');
  const status: RelayStatus = {
    ...FLOWING,
    state: 'STUCK',
    stuck: [{ part: 'kafka', detail: null, stuckMs: 134_000 }],
  };
  expect(sentenceOf(status)).toBe('Kafka has acknowledged nothing for 2 m 14 s.');
});

test.each([300, 332, 719, 720, 1_100])('in %i px no part of the picture covers another or is cut off', (width) => {
  const { places, heightPx } = placesIn(width);
  const all = Object.values(places);
  for (const { x, y, w, h } of all) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + w).toBeLessThanOrEqual(width);
    expect(y + h).toBeLessThanOrEqual(heightPx);
  }
  const covers = (a: (typeof all)[number], b: typeof a) =>
    a !== b && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
  expect(all.filter((a) => all.some((b) => covers(a, b)))).toEqual([]);
});
