import { describe, expect, test } from 'vitest';
import { scopeId, Scopes } from '../../../src/delivery/scopes.ts';
import type { Scope } from '../../../src/model/parked.ts';

const pair = (topic: string, key: string, partition = 0): Scope => ({
  ...{ kind: 'pair', topic, partition },
  key: Buffer.from(key, 'latin1'),
});
const EVERYTHING: Scope = { kind: 'everything' };

function scopes(...parked: Scope[]): Scopes {
  const set = new Scopes({ baseMs: 100, capMs: 1_000 });
  for (const scope of parked) set.park(scope, { reason: 'TEST' }, 0, 0.5);
  return set;
}

const kinds = (set: Scopes, topic: string, partition: number, key: string): string[] =>
  set.covering(topic, partition, () => key).map(({ scope }) => scope.kind);

describe('what a scope covers', () => {
  test('a pair covers its key in its topic, byte for byte (S14)', () => {
    const set = scopes(pair('orders', 'order-a'));
    expect(kinds(set, 'orders', 0, 'order-a')).toEqual(['pair']);
    for (const [topic, key] of [
      ['orders', 'Order-A'],
      ['orders', 'order-\u00e1'],
      ['orders', 'order-a '],
      ['order', 'sorder-a'],
      ['orders2', 'order-a'],
    ]) {
      expect(kinds(set, topic, 0, key)).toEqual([]);
    }
  });

  test('a topic-partition, a topic and everything cover what is in them', () => {
    const set = scopes({ kind: 'topic-partition', topic: 'orders', partition: 3 }, { kind: 'topic', topic: 'bills' });
    expect(kinds(set, 'orders', 3, 'a')).toEqual(['topic-partition']);
    expect(kinds(set, 'orders', 4, 'a')).toEqual([]);
    expect(kinds(set, 'bills', -1, 'a')).toEqual(['topic']);
    set.park(EVERYTHING, { reason: 'TEST' }, 0, 0);
    expect(kinds(set, 'orders', 3, 'a')).toEqual(['everything', 'topic-partition']);
    expect(kinds(set, 'other', -1, 'a')).toEqual(['everything']);
  });

  test('the key of a row is asked for only where a pair is parked', () => {
    const key = (): string => expect.fail('asked for');
    expect(scopes().covering('orders', 0, key)).toEqual([]);
    expect(scopes({ kind: 'topic', topic: 'orders' }).covering('orders', 0, key)).toHaveLength(1);
  });

  test('a key that the table cannot hold waits with its topic-partition, a topic that Kafka cannot have with its like', () => {
    const long = 'x'.repeat(1_025);
    expect(kinds(scopes(pair('orders', long, 2)), 'orders', 2, 'other')).toEqual(['topic-partition']);
    expect(kinds(scopes(pair('orders', long, -1)), 'orders', -1, 'other')).toEqual(['topic']);
    const set = scopes(pair('t'.repeat(250), 'a', -1));
    expect(kinds(set, 't'.repeat(250), -1, 'a')).toEqual(['pair']);
    expect([...set.all].map(({ scope }) => scope)).toMatchObject([{ topic: '' }]);
  });
});

describe('scopes inside others', () => {
  test('the widest that holds all of a scope', () => {
    const set = scopes(pair('orders', 'a', 1), { kind: 'topic-partition', topic: 'orders', partition: 1 });
    const inner = set.get(scopeId(pair('orders', 'a', 1)))!;
    expect(set.wider(inner)?.scope.kind).toBe('topic-partition');
    set.park({ kind: 'topic', topic: 'orders' }, { reason: 'TEST' }, 0, 0);
    expect(set.wider(inner)?.scope.kind).toBe('topic');
    set.park(EVERYTHING, { reason: 'TEST' }, 0, 0);
    expect(set.wider(inner)?.scope.kind).toBe('everything');
    expect(set.wider(set.get(scopeId(EVERYTHING))!)).toBeUndefined();
  });

  test('M10 a topic with a parked topic-partition is told apart', () => {
    const set = scopes({ kind: 'topic-partition', topic: 'orders', partition: 1 }, { kind: 'topic', topic: 'bills' });
    expect([set.hasPartitionOf('orders'), set.hasPartitionOf('bills')]).toEqual([true, false]);
  });
});

describe('back-off', () => {
  test('doubles with each attempt, with full jitter, up to the cap', () => {
    const set = scopes();
    const waits = Array.from(
      { length: 6 },
      () => set.park(pair('orders', 'a'), { reason: 'TEST' }, 1_000, 0.999).dueAtMs,
    );
    expect(waits).toEqual([1_100, 1_200, 1_400, 1_799, 1_999, 1_999]);
    expect(set.park(pair('orders', 'b'), { reason: 'TEST' }, 1_000, 0).dueAtMs).toBe(1_001);
  });

  test('until somebody acts there is no time; everything comes again soon, however often it was put off', () => {
    const set = scopes();
    expect(set.park(pair('orders', 'a'), { reason: 'BLOCKED', dueInMs: null }, 0, 0).dueAtMs).toBeNull();
    set.park(EVERYTHING, { reason: 'TEST', dueInMs: 0 }, 0, 0);
    for (let i = 0; i < 40; i++) set.putOff(scopeId(EVERYTHING), 0, 1);
    expect(set.get(scopeId(EVERYTHING))?.dueAtMs).toBeLessThanOrEqual(1_000);
  });
});

describe('what the table does not have yet (M9)', () => {
  test('everything that changed, once it is written nothing, and after a failed write all of it again', () => {
    const set = scopes(pair('orders', 'a'));
    const first = set.changes(50)!;
    expect(first.changes.put).toMatchObject([{ scope: { kind: 'pair' }, reason: 'TEST', attempts: 1, dueInMs: 0 }]);
    expect(set.changes(50)!.changes.put).toHaveLength(1);
    first.written();
    expect(set.changes(50)).toBeNull();
    set.remove(scopeId(pair('orders', 'a')));
    expect(set.changes(50)!.changes).toMatchObject({ put: [], remove: [{ kind: 'pair', topic: 'orders' }] });
    expect(set.isEmpty).toBe(true);
  });

  test('what changes while it is being written is written again', () => {
    const set = scopes(pair('orders', 'a'));
    const under = set.changes(0)!;
    set.park(pair('orders', 'a'), { reason: 'AGAIN' }, 0, 0.5);
    under.written();
    expect(set.changes(0)!.changes.put).toMatchObject([{ reason: 'AGAIN', attempts: 2 }]);
  });

  test('what was loaded is in the table already, and goes on where it was', () => {
    const set = scopes();
    const entry = { scope: pair('orders', 'a'), partitions: 3, attempts: 4, reason: 'TEST', row: null };
    set.load([{ ...entry, dueInMs: 700 }], 1_000);
    expect(set.changes(1_000)).toBeNull();
    expect(set.get(scopeId(entry.scope))).toMatchObject({ dueAtMs: 1_700, attempts: 4, partitions: 3 });
  });
});
