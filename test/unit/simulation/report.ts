import { AGGREGATES, type Plan, type PlannedRow, type Write } from './plan.ts';
import { simulate } from './simulate.ts';

/** Of a long run only the end is shown. */
const SHOWN_LINES = 150;

/** A broken schedule, to be read by people: what was planned, and all that happened until something broke. */
export async function report(
  plan: Plan,
  found: { seed: number; numRuns: number; numShrinks: number },
): Promise<string> {
  const lines: string[] = [];
  let broken = 'nothing: the run is not the same each time';
  try {
    await simulate(plan, (line) => lines.push(line()));
  } catch (error) {
    broken =
      error instanceof Error ? (error.name === 'Broken' ? error.message : (error.stack ?? error.message)) : 'unknown';
  }
  return [
    `BROKEN: ${broken}`,
    `seed ${found.seed}, after ${found.numRuns} runs, shrunk ${found.numShrinks} times`,
    '',
    ...describePlan(plan),
    '',
    ...lines.slice(-SHOWN_LINES),
    '',
    `const plan: Plan = ${JSON.stringify(plan, (_, value: unknown) => (value === Infinity ? 1e9 : value))};`,
  ].join('\n');
}

function describePlan({
  mode,
  retire,
  onExhausted,
  hasDeadLetters,
  delaysMs,
  seed,
  startMs,
  sizes,
  writes,
  faults,
}: Plan): string[] {
  return [
    `mode ${mode}, ${retire}, ${onExhausted}${hasDeadLetters ? ', dead letters' : ''}, start at ${startMs} ms, ${JSON.stringify(sizes)}, jitter ${seed}, delays [${delaysMs.join(', ')}]`,
    ...writes.map(describeWrite),
    ...faults.map((fault) => `fault ${JSON.stringify(fault)}`),
  ];
}

function describeWrite({ afterMs, kind, rows, idsBefore, visibleAfterMs }: Write): string {
  const ids = idsBefore > 0 ? `, ids before those of ${idsBefore} others` : '';
  return `after ${afterMs} ms ${kind}: ${rows.map(describeRow).join(', ')}; visible after ${visibleAfterMs} ms${ids}`;
}

function describeRow({ aggregate, delayMs, valueBytes, poison }: PlannedRow): string {
  const { topic, key } = AGGREGATES[aggregate];
  const marks = [
    ...(delayMs > 0 ? [`delayed ${delayMs} ms`] : []),
    ...(valueBytes > 10 ? [`${valueBytes} bytes`] : []),
    ...(poison === null ? [] : [`${poison.code} × ${poison.times}`]),
  ];
  return `${topic} '${key}'${marks.length === 0 ? '' : ` (${marks.join(', ')})`}`;
}
