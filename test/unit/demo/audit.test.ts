import { describe, expect, it } from 'vitest';
import { auditLine, auditOf, type CommittedRow, isGood } from '../../demo/audit.ts';
import { type Entry, Ledger } from '../../demo/ledger.ts';
import type { Delivery } from '../../stack/plain-consumer.ts';

const IDS = ['a', 'b', 'c'];

describe('the audit of the demo', () => {
  it('finds nothing where everything arrived once and in order', () => {
    const audit = auditOf(
      rows(),
      ledger(),
      IDS.map((id) => delivery(id)),
    );
    expect(auditLine(audit)).toBe('audit: committed=3 delivered=3 lost=0 reordered=0 altered=0 duplicates=0');
    expect(isGood(audit)).toBe(true);
  });

  it('finds a row that did not arrive', () => {
    const audit = auditOf(rows(), ledger(), [delivery('a'), delivery('c')]);
    expect(audit).toMatchObject({ delivered: 2, lost: 1, reordered: 0 });
    expect(isGood(audit)).toBe(false);
  });

  it('finds a first delivery after a later one, and none in repeats', () => {
    const swapped = auditOf(rows(), ledger(), [delivery('a'), delivery('c'), delivery('b')]);
    expect(swapped.reordered).toBe(1);
    expect(isGood(swapped)).toBe(false);
    const repeated = auditOf(
      rows(),
      ledger(),
      ['a', 'b', 'a', 'b', 'c'].map((id) => delivery(id)),
    );
    expect(repeated).toMatchObject({ reordered: 0, lost: 0 });
    expect(repeated.duplicates).toHaveLength(2);
    expect(isGood(repeated)).toBe(true);
  });

  it('finds an order whose events are in two partitions', () => {
    const audit = auditOf(rows(), ledger(), [delivery('a'), delivery('b', { partition: 1 }), delivery('c')]);
    expect(audit.reordered).toBe(1);
  });

  it.each<[string, Partial<Delivery>]>([
    ['key', { key: Buffer.from('order-2') }],
    ['value', { value: Buffer.from('{"n":1}') }],
    ['value that became a tombstone', { value: null }],
    ['header', { headers: { id: Buffer.from('b'), 'event-type': Buffer.from('paid') } }],
    ['header that is missing', { headers: { id: Buffer.from('b') } }],
    [
      'header twice',
      { headers: { id: Buffer.from('b'), 'event-type': [Buffer.from('placed'), Buffer.from('placed')] } },
    ],
    ['time', { timestampMs: 2 }],
    ['topic', { topic: 'others' }],
  ])('finds another %s', (_, change) => {
    const audit = auditOf(rows(), ledger(), [delivery('a'), delivery('b', change), delivery('c')]);
    expect(audit).toMatchObject({ altered: 1, lost: 0 });
    expect(isGood(audit)).toBe(false);
  });

  it('finds a repeat that is not what came first', () => {
    const again = delivery('a', { value: Buffer.from('{}') });
    const audit = auditOf(rows(), ledger(), [...IDS.map((id) => delivery(id)), again]);
    expect(audit.altered).toBe(1);
  });

  it('finds records that nothing committed stands behind', () => {
    const audit = auditOf(rows(), ledger(), [...IDS.map((id) => delivery(id)), delivery('rolled back')]);
    expect(audit).toMatchObject({ delivered: 3, altered: 1 });
  });

  it('refuses to judge when the service and MySQL do not agree on what was committed', () => {
    const fewer = new Map([...rows()].slice(1));
    expect(() => auditOf(fewer, ledger(), [])).toThrow('the demo is wrong');
  });
});

function rows(): Map<string, CommittedRow> {
  return new Map(
    IDS.map((id) => [
      id,
      {
        id,
        topic: 'orders',
        key: Buffer.from('order-1'),
        value: Buffer.from('{"n": 1}'),
        headers: { id, 'event-type': 'placed' },
        timestampMs: 1,
        isPublished: true,
      },
    ]),
  );
}

function ledger(): Ledger {
  const ledger = new Ledger();
  const entries = IDS.map((id, i): Entry => {
    return { id, topic: 'orders', key: 'order-1', sequence: i + 1, committedMs: NaN, receivedMs: NaN };
  });
  ledger.begun(entries);
  ledger.hasCommitted(entries, 0);
  return ledger;
}

function delivery(id: string, change: Partial<Delivery> = {}): Delivery {
  return {
    topic: 'orders',
    partition: 0,
    key: Buffer.from('order-1'),
    value: Buffer.from('{"n": 1}'),
    headers: { id: Buffer.from(id), 'event-type': Buffer.from('placed') },
    timestampMs: 1,
    receivedMs: 0,
    ...change,
  };
}
