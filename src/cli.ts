#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type RelayCommand, runCommandLine } from './commands/command.ts';

const COMMANDS: readonly RelayCommand[] = [
  {
    name: 'run',
    summary: 'Move outbox rows to Kafka until stopped',
    examples: ['cdc-relay run --config relay.yaml'],
    handlesSignals: true,
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'status',
    summary: 'Say how the relay is doing, from the database',
    options: [['--json', 'print JSON; the shape is statusSchema, version 1']],
    examples: ['cdc-relay status', 'cdc-relay status --json | jq .lagMs'],
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'migrate',
    summary: "Create the relay's tables, and outbox tables that are missing",
    options: [['--print', 'print the SQL instead; needs no server']],
    examples: ['cdc-relay migrate', 'cdc-relay migrate --print | mysql --comments app'],
    load: async () => (await import('./commands/migrate.ts')).migrate,
  },
  {
    name: 'config',
    summary: 'Print the configuration that holds, without its secrets',
    options: [
      ['--check', 'only say whether it is good'],
      ['--json', 'print JSON: {version: 1, file, config}'],
    ],
    examples: ['cdc-relay config --check', 'cdc-relay config --set mysql.host=db1'],
    load: async () => (await import('./commands/config.ts')).config,
  },
];

const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')));

// A reader that has seen enough (`| head`) is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
const exitCode = await runCommandLine(version, COMMANDS, process.argv);
// Where pipes are not synchronous, an exit at once would cut the result short.
process.stdout.write('', () => process.exit(exitCode));
