import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Position } from '../../../src/model/position.ts';
import type { TransactionGroup } from '../../../src/model/source.ts';
import { LogWriter, xaPrepare } from './log-writer.ts';
import { idsOf, OFFSETS, ORDERS, OUTBOX, outboxRow, readerOf } from './outbox-fixture.ts';

const KINDS = [
  'outbox',
  'mixed',
  'foreign',
  'own',
  'rolled back',
  'savepoint',
  'definition',
  'not pending',
  'text',
  'prepared',
] as const;
type Kind = (typeof KINDS)[number];

interface Written {
  readonly gno: number;
  readonly ids: readonly number[];
  readonly end: Position;
  readonly isUndecodable: boolean;
}

/** A log of transactions of all kinds; ids and GTID numbers count up. */
function write(kinds: readonly { readonly kind: Kind; readonly events: number }[]): {
  log: LogWriter;
  written: Written[];
} {
  const log = new LogWriter();
  const written: Written[] = [];
  let id = 1;
  log.formatDescription();
  for (const [n, { kind, events }] of kinds.entries()) {
    const gno = n + 1;
    const ids: number[] = [];
    const insert = (keep: boolean, status = 1) => {
      if (keep) ids.push(id);
      log.insert(90, OUTBOX, [outboxRow(id++, { status })]);
    };
    log.gtid(gno);
    if (kind === 'definition') log.query('CREATE TABLE x (id int)');
    else if (kind === 'text') {
      log.begin();
      log.query('INSERT INTO outbox VALUES (1)');
      log.xid();
    } else if (kind === 'prepared') {
      log.query("XA START X'78',X'',1");
      log.tableMap(90, OUTBOX);
      insert(false);
      log.query("XA END X'78',X'',1");
      log.add(38, xaPrepare('x'));
    } else {
      log.begin();
      if (kind === 'own') log.tableMap(70, OFFSETS);
      if (kind === 'foreign' || kind === 'mixed') log.tableMap(80, ORDERS);
      if (kind !== 'foreign') log.tableMap(90, OUTBOX);
      if (kind === 'savepoint') {
        insert(true);
        log.query('SAVEPOINT `s`');
        for (let i = 0; i < events; i++) insert(false);
        log.query('ROLLBACK TO `s`');
      } else {
        for (let i = 0; i < events; i++) {
          if (kind === 'foreign' || kind === 'mixed') log.insert(80, ORDERS, [outboxRow(1).slice(0, 2)]);
          if (kind !== 'foreign') insert(kind === 'outbox' || kind === 'mixed', kind === 'not pending' ? 3 : 1);
        }
      }
      if (kind === 'rolled back') log.query('ROLLBACK');
      else log.xid();
    }
    written.push({ gno, ids, end: log.position, isUndecodable: kind === 'text' });
  }
  return { log, written };
}

/** Cuts the events into chunks that share one buffer each, as a socket gives them. */
function readInChunks(log: LogWriter, cuts: readonly number[]): TransactionGroup[] {
  const reader = readerOf();
  const groups: TransactionGroup[] = [];
  let at = 0;
  for (let n = 0; at < log.events.length; n++) {
    const events = log.events.slice(at, at + (cuts[n % cuts.length] ?? 1));
    at += events.length;
    const chunk = Buffer.concat(events);
    let start = 0;
    for (const event of events) reader.event(chunk, start, (start += event.length));
    const group = reader.seal();
    if (group !== null) groups.push(group);
  }
  return groups;
}

describe('a log of any transactions, in any chunks', () => {
  const kinds = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), events: fc.integer({ min: 1, max: 5 }) }), {
    minLength: 1,
    maxLength: 30,
  });
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 });

  it('gives each committed row once, in order, and accounts for every GTID', { timeout: 30_000 }, () => {
    fc.assert(
      fc.property(kinds, cuts, (transactions, chunks) => {
        const { log, written } = write(transactions);
        const groups = readInChunks(log, chunks);
        const handedOn = groups.flatMap((group) => group.transactions);
        expect(handedOn.map(idsOf).filter((ids) => ids.length > 0)).toEqual(
          written.map(({ ids }) => ids).filter((ids) => ids.length > 0),
        );
        expect(handedOn.filter(({ undecodable }) => undecodable !== null).map(({ gtid }) => gtid?.gno)).toEqual(
          written.filter(({ isUndecodable }) => isUndecodable).map(({ gno }) => gno),
        );
        for (const { gtid, end } of handedOn) expect(end).toEqual(written[gtid!.gno - 1].end);
        const gnos: number[] = [];
        for (const group of groups) {
          for (const { gtid, skipped } of group.transactions) {
            skipped.forEach(({ first, last }) => gnos.push(...range(first, last)));
            gnos.push(gtid!.gno);
          }
          group.skipped.forEach(({ first, last }) => gnos.push(...range(first, last)));
        }
        expect(gnos).toEqual(written.map(({ gno }) => gno));
        const boundaries = new Set(log.events.length === 0 ? [] : written.map(({ end }) => end.offset));
        for (const { reached } of groups.slice(1)) expect(boundaries).toContain(reached.offset);
        expect(groups.at(-1)!.reached).toEqual(log.position);
      }),
      { numRuns: 100 },
    );
  });
});

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}
