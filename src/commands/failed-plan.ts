import type { FailedActionReport } from '../http/failed-view.ts';
import type { RowId } from '../model/row-ids.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { FailedActions, type FailedAction } from '../store/failed-actions.ts';
import { type FailedRow, FailedRows } from '../store/failed-rows.ts';
import { idText, parseId } from '../store/people-ids.ts';
import type { Session } from '../store/session.ts';
import { reportedRow } from './failed-report.ts';
import { outboxName } from './option-values.ts';
import { usageError } from './problem.ts';
import { escapedText } from './text.ts';

/** Rows of one transaction. */
const BATCH_ROWS = 200;
/** Rows told before the question, and looked behind for later events. */
export const SHOWN_ROWS = 20;

/** What is to be done in one outbox. */
export interface Plan {
  readonly outbox: OutboxSettings;
  readonly failed: FailedRows;
  readonly rows: readonly FailedRow[];
  /** Named, but not there or not failed. */
  readonly notFailed: readonly RowId[];
  readonly more: boolean;
}

export type ActedRow = FailedActionReport['rows'][number];
type Tell = (id: RowId, row: FailedRow | null, outcome: ActedRow['outcome']) => void;

/** The rows that people name. */
export async function namedRows(session: Session, outbox: OutboxSettings, names: readonly string[]): Promise<Plan> {
  const failed = await FailedRows.open(session, outbox);
  const ids = new Set<RowId>();
  for (const name of names) {
    const id = parseId(failed.kind, name);
    if (id === null) throw usageError(`${escapedText(name)} is no id of ${outboxName(outbox)}`);
    ids.add(id);
  }
  // A collation may take a row for one of these that has another key.
  const rows = (await failed.byIds([...ids], true)).filter((row) => ids.has(row.id));
  const notFailed = [...ids].filter((id) => !rows.some((row) => row.id === id));
  return { outbox, failed, rows, notFailed, more: false };
}

export async function laterPublished(plans: readonly Plan[]): Promise<number | null> {
  let sum: number | null = null;
  for (const { failed, rows } of plans) {
    for (const { id } of rows.slice(0, SHOWN_ROWS)) {
      const later = await failed.laterPublished(id);
      if (later !== null) sum = (sum ?? 0) + later;
    }
  }
  return sum;
}

export interface Act {
  readonly action: FailedAction;
  readonly settings: Settings;
  readonly who: string;
}

/** `tell` is given each row of the plan once, when it is done with. */
export async function carryOut(session: Session, plan: Plan, { action, settings, who }: Act, tell: Tell) {
  const actions = new FailedActions(session, settings, plan.outbox, plan.failed, who);
  for (let at = 0; at < plan.rows.length; at += BATCH_ROWS) {
    const some = plan.rows.slice(at, at + BATCH_ROWS);
    const { done, held, notFailed } = await actions.act(
      action,
      some.map(({ id }) => id),
    );
    const rowOf = new Map([...some, ...done].map((row) => [row.id, row]));
    for (const row of done) tell(row.id, row, 'done');
    for (const id of held) tell(id, rowOf.get(id) ?? null, 'held');
    for (const id of notFailed) tell(id, rowOf.get(id) ?? null, 'not-failed');
  }
}

export function actedRow(
  { outbox, failed }: Plan,
  id: RowId,
  row: FailedRow | null,
  outcome: ActedRow['outcome'],
): ActedRow {
  const shown = row === null ? null : reportedRow('', failed.kind, row);
  const { topic = null, keyHex = null, error = null } = shown ?? {};
  return { outbox: outboxName(outbox), id: idText(failed.kind, id), topic, keyHex, error, outcome };
}
