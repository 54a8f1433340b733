import type { RowDataPacket } from 'mysql2/promise';
import { expectedRows } from './expected-rows.ts';
import { audit, type Figures } from './invariants.ts';
import type { Ledger } from './ledger.ts';
import { readRecords } from './read-records.ts';
import type { TestBed } from './test-bed.ts';

const SHOWN = 10;

export interface LedgerFigures extends Figures {
  readonly failed: number;
  readonly rolledBack: number;
  /** Rows whose commit was never answered; the table has told. */
  readonly unknown: number;
}

/**
 * Compares what the writers know, what the table says and what the topics hold: throws unless each committed row is out
 * and `published`, or poison and `failed`, in order and unaltered, and nothing else is. Call it when nothing moves any more.
 */
export async function expectLedger(
  bed: TestBed,
  options: { readonly ledger: Ledger; readonly topics: readonly string[]; readonly table?: string },
): Promise<LedgerFigures> {
  const { ledger, topics, table = 'outbox' } = options;
  const rows = await expectedRows(bed.pool, { table });
  const [states] = await bed.pool.query<RowDataPacket[]>(
    `SELECT id, status, published_at < available_at AS early, last_error, published_at IS NULL AS never FROM ${table}`,
  );
  const stateOf = new Map(states.map((row) => [String(row['id']), row]));
  const offences: string[] = [];
  const there = new Set<string>();
  const out = rows.filter(({ id, eventId }) => {
    there.add(eventId);
    const written = ledger.rows.get(eventId);
    const state = stateOf.get(id)!;
    if (written === undefined) offences.push(`row ${id} (${eventId}) is no writer's`);
    else if (!['committed', 'unknown'].includes(written.transaction.fate)) {
      offences.push(`row ${id} is there, and was not committed (${written.transaction.fate})`);
    }
    const wanted = written?.kind === 'poison' ? 'failed' : 'published';
    if (state['status'] !== wanted) {
      offences.push(`row ${id} is ${String(state['status'])}, not ${wanted}: ${String(state['last_error'])}`);
    }
    if (String(state['early']) === '1') offences.push(`row ${id} was published before it was due`);
    if (wanted === 'failed' && String(state['last_error'] ?? '') === '')
      offences.push(`row ${id} failed without reason`);
    return wanted === 'published';
  });
  for (const [eventId, { transaction }] of ledger.rows) {
    if (transaction.fate === 'committed' && !there.has(eventId)) offences.push(`${eventId} is not in the table`);
  }
  const records = await readRecords(bed.kafka, topics);
  const audited = audit(out, records, { laneOrder: () => ledger.laneOrder(), faultInjected: true });
  const counts = ledger.count();
  const figures = {
    ...audited.figures,
    failed: rows.length - out.length,
    rolledBack: counts.rolledBack,
    unknown: counts.unknown,
  };
  offences.push(...audited.offences);
  if (offences.length > 0) {
    const more = offences.length > SHOWN ? [`and ${offences.length - SHOWN} more`] : [];
    throw new Error(`${JSON.stringify(figures)}\n  ${[...offences.slice(0, SHOWN), ...more].join('\n  ')}`);
  }
  return figures;
}
