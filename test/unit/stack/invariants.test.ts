import { describe, expect, test } from 'vitest';
import type { ExpectedRow } from '../../stack/expected-rows.ts';
import { audit } from '../../stack/invariants.ts';
import type { ReadRecord } from '../../stack/read-records.ts';

const ROWS = [row(1, 'a'), row(2, 'b'), row(3, 'a'), row(4, 'a')];
const NOTHING = { lost: 0, reordered: 0, altered: 0, duplicates: 0 };

function row(id: number, key: string): ExpectedRow {
  const eventId = `event-${id}`;
  return {
    id: String(id),
    eventId,
    topic: 't',
    key: Buffer.from(key),
    value: Buffer.from(`{"n": ${id}}`),
    timestampMs: 1000 + id,
    headers: [
      ['id', Buffer.from(eventId)],
      ['empty', null],
    ],
  };
}

function record(of: ExpectedRow, offset: number, changes: Partial<ReadRecord> = {}): ReadRecord {
  const { topic, key, value } = of;
  const headers = Object.fromEntries(of.headers) as ReadRecord['headers'];
  const place = { topic, partition: 0, offset: BigInt(offset), timestampMs: of.timestampMs!, producerId: '1' };
  return { key, value, headers, ...place, ...changes };
}

const [r1, r2, r3, r4] = ROWS;
const all = () => ROWS.map((each, offset) => record(each, offset));

test('everything out, once and in order', () => {
  expect(audit(ROWS, all())).toEqual({ figures: { committed: 4, delivered: 4, ...NOTHING }, offences: [] });
});

test('aggregates do not wait for each other', () => {
  expect(audit(ROWS, [record(r2, 0), record(r1, 1), record(r3, 2), record(r4, 3)]).offences).toEqual([]);
});

test('a lost row', () => {
  const { figures, offences } = audit(ROWS, all().slice(0, 3));
  expect(figures).toEqual({ committed: 4, delivered: 3, ...NOTHING, lost: 1 });
  expect(offences).toEqual(['lost: row 4 (t, a) is not out']);
});

describe('order', () => {
  test('an earlier event after a later one of its aggregate', () => {
    const { figures, offences } = audit(ROWS, [record(r1, 0), record(r2, 1), record(r4, 2), record(r3, 3)]);
    expect(figures.reordered).toBe(1);
    expect(offences).toEqual(['reordered: t/0@3: row 3 after row 4 of a']);
  });

  test('is that of the commits where the test knows it', () => {
    const commitOrder = [r1, r2, r4, r3].map(({ eventId }) => eventId);
    expect(audit(ROWS, all(), { commitOrder }).figures.reordered).toBe(1);
    const sent = [r1, r2, r4, r3].map((each, offset) => record(each, offset));
    expect(audit(ROWS, sent, { commitOrder }).figures.reordered).toBe(0);
  });

  test('is that of first deliveries: a repetition may come late', () => {
    const sent = [...all(), record(r1, 4)];
    expect(audit(ROWS, sent, { faultInjected: true }).offences).toEqual([]);
    expect(audit(ROWS, sent).offences).toEqual(['duplicates: t/0@4: row 1 again']);
    expect(audit(ROWS, sent).figures.duplicates).toBe(1);
  });

  test('needs one partition for an aggregate', () => {
    const sent = [record(r1, 0), record(r2, 1), record(r3, 0, { partition: 1 }), record(r4, 2)];
    expect(audit(ROWS, sent).figures.reordered).toBe(1);
  });
});

test.each<[string, Partial<ReadRecord>]>([
  ['key', { key: Buffer.from('A') }],
  ['value', { value: Buffer.from('{"n":1}') }],
  ['a null value', { value: null }],
  ['timestamp', { timestampMs: 1002 }],
  ['topic', { topic: 'u' }],
  ['a header too few', { headers: { id: Buffer.from('event-1') } }],
  [
    'a header too many',
    { headers: { id: Buffer.from('event-1'), empty: null, x: 'y' } as unknown as ReadRecord['headers'] },
  ],
  ['a header that is not null', { headers: { id: Buffer.from('event-1'), empty: Buffer.alloc(0) } }],
  [
    'headers in another order',
    { headers: { empty: null, id: Buffer.from('event-1') } as unknown as ReadRecord['headers'] },
  ],
])('altered: %s', (_what, changes) => {
  const { figures, offences } = audit(ROWS, [record(r1, 0, changes), ...all().slice(1)]);
  expect(figures.altered).toBe(1);
  expect(offences).toHaveLength(1);
});

test('a record of no committed row', () => {
  const { figures, offences } = audit(ROWS, [...all(), record(row(5, 'a'), 4)]);
  expect(figures.altered).toBe(1);
  expect(offences).toEqual(['altered: t/0@4: id event-5 belongs to no committed row']);
});

test("an order of the test's own, for each aggregate", () => {
  const laneOrder = () => {
    const out: ExpectedRow[] = [];
    return { passed: (row: ExpectedRow) => (out.push(row) > 1 && row.id === '1' ? out[0] : null) };
  };
  const sent = [record(r4, 0), record(r2, 1), record(r1, 2), record(r3, 3)];
  expect(audit(ROWS, sent, { laneOrder }).offences).toEqual(['reordered: t/0@2: row 1 after row 4 of a']);
});
