import fc from 'fast-check';
import { expect, test } from 'vitest';
import { full } from '../../stack/full.ts';
import { plans } from './plans.ts';
import { report } from './report.ts';
import { simulate } from './simulate.ts';

/** `CDC_RELAY_SIMULATION_SEED` and `…_RUNS` run others than the usual ones. */
const RUNS = Number(process.env['CDC_RELAY_SIMULATION_RUNS'] ?? full(1_500, 30_000));
const SEED = process.env['CDC_RELAY_SIMULATION_SEED'];

test(
  'whatever happens: no row is lost, none overtakes, none comes twice without a fault',
  { timeout: 1_200_000 },
  async () => {
    const details = await fc.check(
      fc.asyncProperty(plans, async (plan) => {
        await simulate(plan);
      }),
      { numRuns: RUNS, ...(SEED === undefined ? {} : { seed: Number(SEED) }) },
    );
    if (details.failed) expect.fail(await report(details.counterexample![0], details));
  },
);
