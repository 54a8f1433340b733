import { expect, test, vi } from 'vitest';
import { A, atEach, C, commit, FLOWING_MS, type Outcome, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

const AGAIN = { kind: 'republish', atMs: 500, aggregate: -1, cancelMs: null } as const;
/** About when the job, which was found with the next look, has sent its rows. */
const SENT_MS = 1_190;

/** How often the row came into its topic. */
function comings({ lines }: Outcome, row: number): number {
  const name = new RegExp(`appended to .*\\br${row}\\b`);
  return lines.filter((line) => name.test(line)).length;
}

test('how far a job is cannot be saved for a while, whenever it is: nothing is sent once more for that', async () => {
  const outcomes = await atEach({ from: SENT_MS, to: SENT_MS + 40, step: 1 }, (atMs) => ({
    delaysMs: [3, 1, 7],
    writes: [commit(FLOWING_MS, [A, A, C])],
    faults: [AGAIN, { kind: 'deadlock', atMs, forMs: 150, call: 'jobs' }],
  }));
  for (const outcome of outcomes) {
    expect([0, 1, 2].map((row) => comings(outcome, row))).toEqual([2, 2, 2]);
  }
});

test.each(['stop', 'pause', 'crash', 'lock'] as const)(
  'the term ends (%s) while how far a job is cannot be saved: what is sent once more is counted',
  async (kind) => {
    const outcomes = await atEach({ from: SENT_MS, to: SENT_MS + 24, step: 3 }, (atMs) => ({
      delaysMs: [3, 1, 7],
      writes: [commit(FLOWING_MS, [A, A, C])],
      faults: [
        AGAIN,
        { kind: 'deadlock', atMs, forMs: 7_000, call: 'jobs' },
        ...(kind === 'stop'
          ? [{ kind, atMs: atMs + 20, restMs: 0, isAwaited: false }]
          : kind === 'pause'
            ? [{ kind, atMs: atMs + 20, forMs: 3_000 }]
            : kind === 'crash'
              ? [{ kind, atMs: atMs + 20, downMs: 0 }]
              : [{ kind, atMs: atMs + 20 }]),
      ],
    }));
    let most = 0;
    for (const outcome of outcomes) {
      const [job] = outcome.world.server.jobs;
      const repeats = job.progress !== null && 'repeats' in job.progress ? job.progress.repeats : -1;
      const times = Math.max(...[0, 1, 2].map((row) => comings(outcome, row)));
      most = Math.max(most, times);
      expect(times).toBeLessThanOrEqual(2 + repeats);
    }
    expect(most).toBeGreaterThan(2);
  },
);

test('a batch of a job has no answer and its lane is given up: the job is begun again, and says so', async () => {
  const { world } = await runSchedule({
    writes: [commit(FLOWING_MS, [A])],
    faults: [AGAIN, { kind: 'partition', atMs: 950, forMs: 1_000, topic: 0, partition: 0, how: 'unanswered' }],
  });
  expect(world.server.jobs.map(({ progress }) => progress)).toEqual([expect.objectContaining({ sent: 1, repeats: 1 })]);
});
