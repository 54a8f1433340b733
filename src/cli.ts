#!/usr/bin/env node
import { type RelayCommand, runCommandLine } from './commands/command.ts';
import { FILTER_OPTIONS } from './commands/failed-filter.ts';
import { ExitCode } from './commands/exit-codes.ts';
import { nodeTooOld, version } from './commands/version.ts';

const ACT_OPTIONS = [
  ['--all', 'all failed rows, or all that the other options name'],
  ...FILTER_OPTIONS,
  ['--dry-run', 'only say what would be done'],
  ['--yes', 'do not ask; needed where there is no terminal'],
  ['--json', 'print JSON; the shape is failedActionSchema, version 1'],
] as const;

const RESYNC_OPTIONS = [
  ['--from-head', 'go on from the end of the binlog (default where no outbox has retire: keep)'],
  ['--from-position <file:offset>', 'go on from this place of the binlog'],
  ['--from-gtid <set>', 'go on behind the transactions of this set (MySQL)'],
  ['--republish', 'send rows again that have been published; which, say the next options'],
  ['--outbox <table>', 'rows of this outbox'],
  ['--id <a..b>', 'rows with these primary keys, both ends included'],
  ['--aggregate <id>', 'rows of this aggregate'],
  ['--topic <name>', 'rows for this topic'],
  ['--since <time>', 'rows created since: 2h, 7d, 2026-11-29T22:00Z'],
  ['--until <time>', 'rows created before'],
  ['--dry-run', 'only say what would be done; with --republish it walks the tables'],
  ['--yes', 'do not ask; needed where there is no terminal'],
  ['--json', 'print a line of JSON for each change (resyncJobSchema), or the plan (resyncPlanSchema), version 1'],
] as const;

const GROUPS = { failed: 'Rows that could not be delivered: list, show, retry, discard' };

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
    summary: 'Say how the relay is doing, from the database and from the relay that listens here',
    options: [
      ['--watch', 'look every two seconds until Ctrl-C (exit 130)'],
      ['--max-lag <age>', 'exit 1 when the lag is greater: 60s, 5m'],
      ['--max-failed <rows>', 'exit 1 when more rows have failed'],
      ['--max-parked <scopes>', 'exit 1 when more pairs, partitions and topics are parked'],
      ['--min-headroom <age>', "exit 1 when the checkpoint's binlog may be purged sooner: 1d"],
      ['--json', 'print JSON; the shape is statusSchema, version 1'],
    ],
    examples: [
      'cdc-relay status',
      'cdc-relay status --watch',
      'cdc-relay status --max-lag 60s --max-failed 0 --min-headroom 1d',
      'cdc-relay status --json | jq .lagMs',
    ],
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'pause',
    summary: 'Let the relay rest: nothing is read, sent or marked until it is resumed',
    options: [['--json', 'print JSON; the shape is pauseSchema, version 1']],
    examples: ['cdc-relay pause'],
    load: async () => (await import('./commands/pause.ts')).pause,
  },
  {
    name: 'resume',
    summary: 'Let a relay go on that has been paused',
    options: [['--json', 'print JSON; the shape is pauseSchema, version 1']],
    examples: ['cdc-relay resume'],
    load: async () => (await import('./commands/resume.ts')).resume,
  },
  {
    name: 'check',
    summary: 'Look at everything that the relay needs, before it is deployed',
    options: [
      ['--all', 'show what is good too'],
      ['--json', 'print JSON; the shape is checkSchema, version 1'],
    ],
    examples: ['cdc-relay check', 'cdc-relay check --json | jq \'.findings[] | select(.severity == "error")\''],
    load: async () => (await import('./commands/check.ts')).check,
  },
  {
    name: 'migrate',
    summary: "Create the relay's tables, and outbox tables that are missing",
    options: [['--print', 'print the SQL instead; needs no server']],
    examples: ['cdc-relay migrate', 'cdc-relay migrate --print | mysql --comments app'],
    whenInterrupted: 'interrupted: what was created stays; run it again',
    load: async () => (await import('./commands/migrate.ts')).migrate,
  },
  {
    name: 'adopt',
    summary: 'Make an existing table an outbox: history counts as published',
    argument: ['<table>', 'schema.table'],
    options: [
      ['--from-debezium-offset <file>', 'go on where Debezium stopped: its offset.storage.file.filename'],
      ['--from-debezium-topic <topic>', 'the same from the offsets topic of Kafka Connect'],
      ['--connector <name>', 'whose offset, where there are several'],
      ['--dry-run', 'only say what would be done'],
      ['--yes', 'do not ask; needed where there is no terminal'],
      ['--json', 'print JSON; the shape is adoptSchema, version 1'],
    ],
    examples: ['cdc-relay adopt app.outboxevent --dry-run', 'cdc-relay adopt app.outboxevent --yes'],
    whenInterrupted: 'interrupted: what was done stays, no row counts as pending by it; run it again',
    load: async () => (await import('./commands/adopt.ts')).adopt,
  },
  {
    name: 'failed list',
    summary: 'List rows that could not be delivered',
    options: [
      ...FILTER_OPTIONS,
      ['--limit <rows>', 'this many at most (default: 50)'],
      ['--json', 'print JSON; the shape is failedListSchema, version 1'],
    ],
    examples: ['cdc-relay failed list', 'cdc-relay failed list --topic orders --since 2h'],
    load: async () => (await import('./commands/failed-list.ts')).failedList,
  },
  {
    name: 'failed show',
    summary: 'Show one row, its payload by size and SHA-256 only',
    argument: ['<id>', 'primary key of the row'],
    options: [FILTER_OPTIONS[0], ['--json', 'print JSON; the shape is failedShowSchema, version 1']],
    examples: ['cdc-relay failed show 81'],
    load: async () => (await import('./commands/failed-show.ts')).failedShow,
  },
  {
    name: 'failed retry',
    summary: 'Make failed rows pending again: the relay delivers them',
    argument: ['[ids...]', 'primary keys of the rows'],
    options: ACT_OPTIONS,
    examples: ['cdc-relay failed retry 81', 'cdc-relay failed retry --all --topic orders --dry-run'],
    whenInterrupted: 'interrupted: the rows told are done, the others are failed as they were; run it again',
    load: async () => (await import('./commands/failed-act.ts')).failedRetry,
  },
  {
    name: 'failed discard',
    summary: 'Delete failed rows: they are never delivered',
    argument: ['[ids...]', 'primary keys of the rows'],
    options: ACT_OPTIONS,
    examples: ['cdc-relay failed discard 81', 'cdc-relay failed discard --reason ROW_ENCODING --yes'],
    whenInterrupted: 'interrupted: the rows told are deleted, the others are failed as they were; run it again',
    load: async () => (await import('./commands/failed-act.ts')).failedDiscard,
  },
  {
    name: 'purge',
    summary: 'Delete or archive rows that were published long ago',
    options: [
      ['--outbox <table>', 'only this outbox'],
      ['--older-than <age>', 'published so long ago: 7d, 12h (default: outboxes[].retention.afterMs)'],
      ['--dry-run', 'only count them; reads the whole table'],
      ['--yes', 'do not ask; needed where there is no terminal'],
      ['--json', 'print JSON; the shape is purgeSchema, version 1'],
    ],
    examples: ['cdc-relay purge --dry-run', 'cdc-relay purge --older-than 7d --yes'],
    handlesSignals: true,
    load: async () => (await import('./commands/purge.ts')).purge,
  },
  {
    name: 'verify',
    summary: 'Compare what the tables call published with what the topics hold',
    options: [
      ['--outbox <table>', 'only this outbox'],
      ['--topic <name>', 'only rows for this topic'],
      ['--from-id <id>', 'rows from this primary key on'],
      ['--to-id <id>', 'rows up to this primary key'],
      ['--since <time>', 'published since: 2h, 7d, 2026-11-29T22:00Z'],
      ['--until <time>', 'published until (default: now)'],
      ['--json', 'print JSON; the shape is verifySchema, version 1'],
    ],
    examples: ['cdc-relay verify', 'cdc-relay verify --since 2h --json', 'cdc-relay verify --from-id 1 --to-id 50000'],
    whenInterrupted: 'interrupted: nothing is kept; run it again, or in parts: --from-id, --to-id, --outbox',
    load: async () => (await import('./commands/verify.ts')).verify,
  },
  {
    name: 'resync',
    summary: 'Deliver what is pending from the tables, or send published rows again',
    options: RESYNC_OPTIONS,
    examples: [
      'cdc-relay resync --dry-run',
      'cdc-relay resync --from-position binlog.000127:88213004',
      'cdc-relay resync --republish --topic orders --since 2026-11-29T22:00Z --dry-run',
    ],
    handlesSignals: true,
    load: async () => (await import('./commands/resync.ts')).resync,
  },
  {
    name: 'resync list',
    summary: 'List jobs, the last ones first',
    options: [
      ['--limit <jobs>', 'this many at most (default: 20)'],
      ['--json', 'print JSON; the shape is resyncListSchema, version 1'],
    ],
    examples: ['cdc-relay resync list'],
    load: async () => (await import('./commands/resync-jobs.ts')).resyncList,
  },
  {
    name: 'resync show',
    summary: 'Show one job',
    argument: ['<job>', 'its number'],
    options: [['--json', 'print JSON; the shape is resyncJobSchema, version 1']],
    examples: ['cdc-relay resync show 12'],
    load: async () => (await import('./commands/resync-jobs.ts')).resyncShow,
  },
  {
    name: 'resync attach',
    summary: 'Watch a job until it has ended; lead for it where no relay does',
    argument: ['<job>', 'its number'],
    options: [['--json', 'print a line of JSON for each change; the shape is resyncJobSchema, version 1']],
    examples: ['cdc-relay resync attach 12'],
    handlesSignals: true,
    load: async () => (await import('./commands/resync-jobs.ts')).resyncAttach,
  },
  {
    name: 'resync cancel',
    summary: 'End a job; what has been sent stays sent',
    argument: ['<job>', 'its number'],
    options: [['--json', 'print JSON; the shape is resyncCancelSchema, version 1']],
    examples: ['cdc-relay resync cancel 12'],
    load: async () => (await import('./commands/resync-jobs.ts')).resyncCancel,
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

/** A reader that has seen enough (`| head`) is no fault; a disk that is full is. */
function endUnwritten({ code }: NodeJS.ErrnoException): never {
  if (code === 'EPIPE') process.exit(0);
  process.stderr.write(`error: the result cannot be written: ${code ?? 'no code'}\n`);
  process.exit(1);
}

process.stdout.on('error', endUnwritten);
// What cannot be told there has nowhere to be told; the exit code says it.
process.stderr.on('error', () => undefined);
const tooOld = nodeTooOld(process.versions.node);
if (tooOld !== null) {
  process.stderr.write(`error: ${tooOld} (${process.execPath})\n`);
  process.exit(ExitCode.Usage);
}
const exitCode = await runCommandLine(version, COMMANDS, GROUPS, process.argv);
// Where pipes are not synchronous, an exit at once would cut the result short. A fault comes here before it is an event.
process.stdout.write('', (error) => (error ? endUnwritten(error) : process.exit(exitCode)));
