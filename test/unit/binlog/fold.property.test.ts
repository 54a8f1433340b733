import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newCounters } from '../../../src/binlog/source-counters.ts';
import { LogWriter, type TestRow } from './log-writer.ts';
import { OUTBOX, outboxRow, readChunk, readerOf, rowsOf } from './outbox-fixture.ts';

interface Row {
  readonly id: number;
  readonly value: string;
}

/** A change of one row, by its place among those that are there. */
type Change =
  | { readonly kind: 'insert' }
  | { readonly kind: 'update' | 'rekey' | 'delete'; readonly at: number }
  | { readonly kind: 'old'; readonly change: 'update' | 'rekey' | 'delete' };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('insert' as const) }),
  fc.record({ kind: fc.constantFrom('update' as const, 'rekey' as const, 'delete' as const), at: fc.nat(50) }),
  fc.record({
    kind: fc.constant('old' as const),
    change: fc.constantFrom('update' as const, 'rekey' as const, 'delete' as const),
  }),
);

const image = ({ id, value }: Row): TestRow => outboxRow(id, { value });

/** Writes the changes as one transaction; gives what is left of its own rows, in the order of the inserts. */
function write(log: LogWriter, changes: readonly Change[]): { rows: Row[]; replaced: number } {
  let rows: Row[] = [];
  let next = 1;
  let old = 1000;
  let replaced = 0;
  log.gtid(1);
  log.begin();
  log.tableMap(90, OUTBOX);
  for (const each of changes) {
    if (each.kind === 'insert') {
      const row = { id: next++, value: 'first' };
      rows.push(row);
      log.insert(90, OUTBOX, [image(row)]);
    } else if (each.kind === 'old') {
      const row = { id: old++, value: 'old' };
      if (each.change === 'delete') log.delete(90, OUTBOX, [image(row)]);
      else log.update(90, OUTBOX, [[image(row), image({ ...row, id: each.change === 'rekey' ? old++ : row.id })]]);
      if (each.change === 'rekey') replaced += 1;
    } else if (rows.length > 0) {
      const row = rows[each.at % rows.length];
      if (each.kind === 'delete') {
        rows = rows.filter((other) => other !== row);
        log.delete(90, OUTBOX, [image(row)]);
      } else {
        const changed = { id: each.kind === 'rekey' ? next++ : row.id, value: `${row.value}+` };
        rows = rows.map((other) => (other === row ? changed : other));
        log.update(90, OUTBOX, [[image(row), image(changed)]]);
      }
    }
  }
  log.xid();
  return { rows, replaced };
}

describe('changes of rows by the transaction that inserted them', () => {
  it('S16 INSERT u1, DELETE u1, INSERT u2 (old), UPDATE u2 (new): u2 (new) only', () => {
    const log = new LogWriter();
    write(log, [{ kind: 'insert' }, { kind: 'delete', at: 0 }, { kind: 'insert' }, { kind: 'update', at: 0 }]);
    const [transaction] = readChunk(readerOf(), log.events)!.transactions;
    expect(rowsOf(transaction)).toEqual([{ id: 2n, topic: 'orders', key: 'agg-2', value: 'first+' }]);
  });

  it('take rows out of the middle of their event', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(
      90,
      OUTBOX,
      [1, 2, 3, 4, 5].map((id) => outboxRow(id)),
    );
    log.delete(90, OUTBOX, [outboxRow(3), outboxRow(1)]);
    log.update(90, OUTBOX, [[outboxRow(4), outboxRow(4, { value: 'new' })]]);
    log.xid();
    const [transaction] = readChunk(readerOf(), log.events)!.transactions;
    expect(rowsOf(transaction).map(({ id, value }) => `${id} ${value}`)).toEqual(['2 value 2', '4 new', '5 value 5']);
  });

  it('are folded into what is left at the commit, in the order of the inserts', { timeout: 30_000 }, () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const log = new LogWriter();
        const counters = newCounters();
        const { rows, replaced } = write(log, changes);
        const { transactions } = readChunk(readerOf({ counters }), log.events)!;
        const read = transactions.flatMap(rowsOf).map(({ id, value }) => ({ id: Number(id), value }));
        expect(read).toEqual(rows);
        expect(transactions).toHaveLength(rows.length > 0 ? 1 : 0);
        expect(counters.replaced).toBe(replaced);
      }),
      { numRuns: 200 },
    );
  });

  it('are left to the sweep when the row is pending no more', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)]);
    log.update(90, OUTBOX, [[outboxRow(1), outboxRow(1, { status: 4 })]]);
    log.xid();
    const [transaction] = readChunk(readerOf(), log.events)!.transactions;
    expect(rowsOf(transaction).map(({ id }) => id)).toEqual([2n]);
  });

  it('A1 REPLACE of a row from before is counted, and not delivered here', () => {
    const counters = newCounters();
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.update(90, OUTBOX, [[outboxRow(1), outboxRow(2)]]);
    log.xid();
    expect(readChunk(readerOf({ counters }), log.events)!.transactions).toEqual([]);
    expect(counters.replaced).toBe(1);
  });
});
