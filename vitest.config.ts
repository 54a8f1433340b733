import { defineConfig } from 'vitest/config';

/** Tests that talk to real servers: the shared ones of the run, or their own. */
const onServers = {
  globalSetup: ['test/stack/global-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 120_000,
};

/** The kinds of test, by what they prove. They run one after the other, each with as many files at once as it bears. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          ...onServers,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // What freezes and kills must not slow down what measures the time until it is noticed.
        test: {
          name: 'fault',
          include: ['test/fault/**/*.test.ts'],
          ...onServers,
          testTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          ...onServers,
          testTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
