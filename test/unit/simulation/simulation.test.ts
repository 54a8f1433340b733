import fc from 'fast-check';
import { expect, test } from 'vitest';
import { full } from '../../stack/full.ts';
import type { Plan } from './plan.ts';
import { plans } from './plans.ts';
import { report } from './report.ts';
import { simulate } from './simulate.ts';

/**
 * The short run is the same each time, the long one tries what nobody has tried yet. `CDC_RELAY_SIMULATION_SEED` and
 * `…_RUNS` run others than the usual ones.
 */
const RUNS = Number(process.env['CDC_RELAY_SIMULATION_RUNS'] ?? full(1_500, 30_000));
/** A slow machine runs fewer. */
const LIMIT_MS = full(15_000, 600_000);
const SEED = process.env['CDC_RELAY_SIMULATION_SEED'] ?? full('20261130', undefined);

test(
  'whatever happens: no row is lost, none overtakes, none comes twice without a fault',
  { timeout: 1_200_000 },
  async () => {
    const details = await fc.check(
      fc.asyncProperty(plans, async (plan) => {
        await simulate(plan);
      }),
      {
        numRuns: RUNS,
        plugins: [fc.interruptAfterTimeLimit(LIMIT_MS)],
        ...(SEED === undefined ? {} : { seed: Number(SEED) }),
      },
    );
    const [plan] = (details.counterexample ?? []) as Plan[];
    if (details.failed) expect.fail(await report(plan, details));
  },
);
