import { z } from 'zod';
import type { Adopted, Looked } from '../adopt/adoption.ts';
import type { DebeziumOffset } from '../adopt/debezium-offset.ts';
import { configEntry } from '../adopt/mapping.ts';
import { configText } from '../config/print.ts';
import { formatPosition } from '../model/position.ts';
import { countText, escapedText, rowsText } from './text.ts';

const unsent = z.object({ rows: z.number(), gone: z.number() }).nullable();

/** What `adopt --json` prints. Fields may be added; a changed meaning raises `version`. */
export const adoptSchema = z.object({
  version: z.literal(1),
  dryRun: z.boolean(),
  /** `schema.table` */
  table: z.string(),
  /** An estimate of the server's. */
  rows: z.number(),
  problems: z.array(z.string()),
  /** The entry of `outboxes`; `configured`: the configuration says the same. */
  config: z.looseObject({ table: z.string() }),
  configured: z.boolean(),
  /** Statements that were missing. */
  statements: z.array(z.string()),
  debezium: z
    .object({ connector: z.string(), position: z.string(), gtids: z.string().nullable(), inTransaction: z.boolean() })
    .nullable(),
  /** Rows that Debezium has not sent; `gone`: of these, rows that are not in the table any more. */
  unsent,
  /** Where the relay begins; null: nothing was done, or it had a position. */
  start: z.string().nullable(),
  savedBefore: z.string().nullable(),
});
export type AdoptReport = z.infer<typeof adoptSchema>;

export function adoptReport(
  table: string,
  { shape, mapping, plan, saved, unsent: before }: Looked,
  debezium: DebeziumOffset | null,
  adopted: Adopted | null,
): AdoptReport {
  return {
    version: 1,
    dryRun: adopted === null,
    table,
    rows: shape.rows,
    problems: [...mapping.problems],
    config: configEntry(mapping.outbox) as AdoptReport['config'],
    configured: !mapping.isNew,
    statements: [plan.addColumns, plan.addIndex, plan.cut].filter((statement) => statement !== null),
    debezium:
      debezium === null
        ? null
        : {
            connector: debezium.connector,
            position: formatPosition(debezium.position),
            gtids: debezium.gtids,
            inTransaction: debezium.inTransaction,
          },
    unsent: adopted?.unsent ?? before,
    start: adopted?.start == null ? null : formatPosition(adopted.start.position),
    savedBefore: saved === null ? null : formatPosition(saved.checkpoint.position),
  };
}

/** What is there and what would be done. */
export function planText(report: AdoptReport, name: string): string {
  const { rows, config, configured, statements, debezium, unsent: waiting, savedBefore } = report;
  const table = escapedText(report.table);
  const lines = [`adopt ${table}: ~${rowsText(rows)} of history`];
  if (!configured) lines.push('for the configuration, under outboxes:', ...indented(configText([config])));
  const steps = statements.map((statement) => `${escapedText(statement)};`);
  if (report.statements.length > 0 && steps.at(-1)!.includes('SET DEFAULT')) {
    steps[steps.length - 1] = `LOCK TABLES ... WRITE; ${steps.at(-1)!} note the position; UNLOCK TABLES;`;
  }
  if (waiting !== null) {
    steps.push(`${rowsText(waiting.rows)} that ${escapedText(debezium!.connector)} has not sent become pending`);
  }
  if (savedBefore === null) steps.push(`save the position as the start of relay ${escapedText(name)}`);
  lines.push(...(steps.length === 0 ? ['nothing to do'] : ['plan', ...steps.map((step, n) => `  ${n + 1}. ${step}`)]));
  if (statements.length > 0) {
    lines.push('effect  columns come at once, the index while the table is written; at the cut INSERTs wait some ms,');
    lines.push('        or up to 1 s at a time while a transaction on the table is open');
  }
  if (debezium !== null) {
    const { position, inTransaction } = debezium;
    lines.push(`Debezium  ${escapedText(debezium.connector)} had come to ${escapedText(position)}; it must be stopped`);
    if (inTransaction) lines.push('          in the middle of a transaction: the part that it had sent is sent again');
  } else if (savedBefore === null)
    lines.push('history   what is in the table counts as published; nothing of it is sent');
  if (savedBefore !== null)
    lines.push(`position  ${savedBefore} is saved already: relay ${escapedText(name)} goes on there`);
  return lines.join('\n');
}

/** What was done. */
export function doneText(report: AdoptReport): string {
  const table = escapedText(report.table);
  const lines = [`adopted ${table}${report.start === null ? '' : `: the relay begins at ${report.start}`}`];
  const waiting = report.unsent;
  if (waiting !== null) {
    lines.push(`  ${rowsText(waiting.rows - waiting.gone)} that Debezium has not sent are pending`);
    if (waiting.gone > 0)
      lines.push(`  ${countText(waiting.gone)} more were deleted from the table, and are sent by nobody`);
  }
  lines.push(`next  ${report.configured ? '' : 'put the entry above into the configuration; '}cdc-relay run`);
  return lines.join('\n');
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${escapedText(line)}`);
}
