import { defineConfig } from 'vitest/config';

/** Tests that talk to real servers: the shared ones of the run, or their own. */
const onServers = {
  globalSetup: ['test/stack/global-setup.ts'],
  testTimeout: 240_000,
  hookTimeout: 240_000,
};

const ON_MARIADB = ['test/integration/mariadb/*.test.ts'];
const ON_BOTH = ['test/integration/{binlog,engine}/*.test.ts'];

/** The kinds of test, by what they prove. They run one after the other, each with as many files at once as it bears. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: ON_MARIADB,
          ...onServers,
          // Mostly waiting for the servers: with two files at once two cores are half idle.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // The tests of source and engine once more, against MariaDB; without --full only what is MariaDB's own.
        test: {
          name: 'mariadb',
          include: process.env['CDC_RELAY_TEST_FULL'] === '1' ? [...ON_MARIADB, ...ON_BOTH] : ON_MARIADB,
          ...onServers,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Mostly waiting: for what is frozen, and for servers of their own to start.
        test: {
          name: 'fault',
          include: ['test/fault/**/*.test.ts'],
          ...onServers,
          testTimeout: 300_000,
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          ...onServers,
          testTimeout: 300_000,
          maxWorkers: 2,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
