import type { LogLevel } from '../model/log.ts';

/** One kind of line of the log. */
export interface LoggedEvent {
  /** Two where the first one matters, and its repeats do not. */
  readonly level: LogLevel | readonly LogLevel[];
  /** Beside `level`, `time` and `event`; those that are not always there end in `?`. */
  readonly fields: readonly string[];
  /** When it is told, and what follows. Ends with a full stop. */
  readonly when: string;
}

/**
 * Every event of the log by what it is about: docs/events.md is made of this, and a test holds it against the source.
 * People build alerts on the names: they change like an API.
 */
export const EVENTS = {
  relay: {
    'relay-started': event('info', ['name', 'pid'], '`run` has begun.'),
    'relay-state': event(
      'info',
      ['from', 'to', 'epoch?', 'server?', 'version?', 'code?'],
      'The relay goes from one state to another: starting, standby, leading, flowing, paused, stopping, stopped, halted.',
    ),
    'relay-waits': event(
      'warn',
      ['code', 'detail'],
      'It cannot lead now and tries again; once for each row of failures.',
    ),
    'relay-halted': event(
      'error',
      ['code', 'detail'],
      'It ends: a person must mend the cause. The checkpoint stands before it.',
    ),
    'stop-requested': event(
      'info',
      ['signal', 'shutdownMs'],
      'The first SIGTERM or SIGINT: what is in hand is delivered and saved.',
    ),
    'stopped-hard': event('error', ['why', 'effect'], 'A second signal, or `relay.shutdownMs` was too short.'),
    'pause-asked-for': event('info', [], 'Somebody has asked for a pause: the term ends softly.'),
    'pause-unknown': event(
      'warn',
      ['code', 'detail'],
      'It cannot be read whether a pause is asked for; once for each row of failures.',
    ),
    'pause-known': event('info', ['failures'], 'It could be read again.'),
    'relay-health': event(
      ['info', 'warn'],
      ['from', 'to', 'part?', 'detail?'],
      'The word of `/status` has changed (docs/metrics.md); STUCK at level warn. Only where `http.port` is open.',
    ),
    resumed: event('info', [], 'The pause is over.'),
    crashed: event('error', ['err'], 'A bug: the process ends. Please report it with this line.'),
    'log-level': event(
      'info',
      ['to', 'configured'],
      'SIGUSR2 has changed the level of the log. Told whatever the level is.',
    ),
  },
  leadership: {
    'leader-lock-lost': event(
      'warn',
      ['code', 'detail'],
      'The connection that holds the lock of the leader has failed: nothing more is sent.',
    ),
    'leadership-lost': event('warn', [], 'The term has ended because this process leads no longer.'),
    'term-ended': event(
      'warn',
      ['code', 'detail'],
      'A fault has ended the term: the next begins at the saved checkpoint.',
    ),
    'claims-released': event('info', ['rows'], 'Rows that an earlier leader had claimed are pending again.'),
    'claims-held': event(
      'warn',
      ['rows'],
      'The application holds rows that an earlier leader had claimed: their aggregates wait (`CLAIM_HELD`) until it lets go.',
    ),
  },
  position: {
    'first-start': event('info', ['position'], 'No checkpoint was saved: it begins here.'),
    'start-at-checkpoint': event('info', ['position'], 'It goes on at the saved checkpoint.'),
    'position-unusable': event(
      'error',
      ['code', 'detail', 'saved', 'now', 'effect'],
      'The log from the checkpoint on is gone, or is another one: what is pending comes from the tables (docs/recovery.md).',
    ),
    'history-counts-as-published': event(
      'info',
      ['table', 'rows'],
      '`start: head`: rows that were pending are marked as published.',
    ),
    'sent-rows-compared': event(
      'info',
      ['table', 'rows', 'missing'],
      'Behind the address is another server: what was sent is looked for in it.',
    ),
    'sent-rows-missing': event(
      'error',
      ['table', 'rows', 'ids', 'effect'],
      'It lacks rows that were sent (docs/recovery.md).',
    ),
  },
  stream: {
    'binlog-streaming': event('info', ['from'], 'A dump of the binlog has begun.'),
    'earlier-dump-ended': event(
      'info',
      ['connectionId', 'why'],
      'A dump under the same replica id, of a frozen process or behind a lost network, was still open and is killed.',
    ),
    'binlog-second-read': event(
      'info',
      ['from'],
      'A transaction over `relay.maxTransactionBytes` is read once more, row by row.',
    ),
    'tail-flowing': event('info', ['position'], 'The first transactions of a stream have come.'),
    'tail-lost': event('warn', ['code', 'detail', 'resumeAt'], 'The stream has ended; the next one begins soon.'),
    'sweep-only': event(
      'error',
      ['code', 'detail', 'effect'],
      'The binlog cannot be read: every row goes by the sweep until it can.',
    ),
    'transaction-left-to-sweep': event(
      'warn',
      ['position', 'code', 'detail'],
      'A transaction cannot be read from the log: its rows go by the sweep, in order.',
    ),
    'rows-left-pending': event(
      'warn',
      ['why', 'rows'],
      'Rows of the log that are the sweep’s; `rows` since the start, once a minute at most.',
    ),
    'row-read-failed': event(
      'warn',
      ['table', 'rows', 'code', 'detail'],
      'What the log lacks of rows cannot be read from the table; it is tried again.',
    ),
    'row-read-recovered': event('info', ['tries'], 'It could be read.'),
    'rows-gone-before-read': event(
      'warn',
      ['table', 'rows', 'ids'],
      'Rows were deleted before what the log lacks of them was read: nothing was sent.',
    ),
  },
  kafka: {
    'kafka-connected': event('info', ['brokers'], 'The cluster answers; once a term.'),
    'kafka-broker-lost': event(
      'warn',
      ['broker', 'code', 'detail'],
      'No connection can be opened to a broker; once until it can.',
    ),
    'kafka-broker-back': event('info', ['broker'], 'It can be opened again.'),
    'kafka-connection-ended': event('debug', ['broker', 'code', 'detail'], 'A connection has ended.'),
    'kafka-limits-unknown': event(
      'debug',
      ['of', 'code'],
      'A limit of a topic or broker may not be asked for: the usual one is assumed.',
    ),
    'kafka-client': event('debug', ['namespace', 'message', 'broker?'], 'What kafkajs has to say.'),
    'producer-renewed': event(
      'warn',
      ['topic', 'partition'],
      'A batch of unknown fate was given up: the topic-partition has a new producer id.',
    ),
    'topic-in-use': event('info', ['topic', 'partitions'], 'The first row for a topic.'),
    'topic-grown': event('info', ['topic', 'partitions'], 'It has more partitions, and they are used from now on.'),
    'topic-unavailable': event('warn', ['topic', 'code'], 'Nothing is known of a topic; it is asked for again.'),
  },
  delivery: {
    'lane-held': event(
      'warn',
      ['topic', 'partition', 'code', 'detail', 'records', 'uncertain'],
      'A topic-partition takes nothing now; the same batch is sent again.',
    ),
    'lane-flowing': event('info', ['topic', 'partition', 'heldMs', 'tries'], 'It takes rows again.'),
    'scope-parked': event(
      ['warn', 'debug'],
      ['scope', 'topic?', 'partition?', 'reason', 'attempts'],
      'Rows of a pair, a topic-partition, a topic or everything wait in the table. Put off again: at level debug.',
    ),
    'scopes-taken-over': event(
      'info',
      ['scopes'],
      'What was parked when the term began, and stays so: after a restart, or because everything is to come from the tables.',
    ),
    'scope-released': event(
      ['info', 'debug'],
      ['scope', 'topic?', 'partition?', 'reason', 'attempts'],
      'They wait no longer. Of a resync that sends rows again: at level debug.',
    ),
    'hand-over-given-up': event('debug', ['reason', 'scopes'], 'A release did not come to its end; it is tried again.'),
    'row-failed': event(
      'warn',
      ['table', 'rowId', 'code', 'attempts', 'detail', 'deadLetter'],
      'A row cannot be delivered: it is `failed` (`cdc-relay failed list`).',
    ),
    'row-retried': event('debug', ['table', 'rowId', 'code', 'attempts'], 'A row was refused, and is tried again.'),
    'dead-letter-not-sent': event(
      'warn',
      ['table', 'rowId', 'code', 'attempts', 'reason'],
      'A row stays pending because its dead letter could not be sent.',
    ),
    'dead-letter-cut': event(
      'warn',
      ['table', 'rowId', 'omitted'],
      'A dead letter was too large, and went without what is named.',
    ),
  },
  table: {
    'flush-failed': event(
      'warn',
      ['code', 'detail'],
      'Marks and checkpoint cannot be written; once for each row of failures.',
    ),
    'flush-recovered': event('info', ['tries'], 'They are written.'),
    'row-failures-failed': event(
      'warn',
      ['code', 'detail'],
      'The state of rows that failed cannot be written; once for each row of failures.',
    ),
    'row-failures-recovered': event('info', ['tries'], 'It is written.'),
    'rows-held-by-application': event(
      'warn',
      ['rows'],
      'Rows that were sent cannot be marked: a transaction of the application holds them.',
    ),
    'rows-released-by-application': event('info', [], 'It holds them no longer.'),
    'sweep-failed': event(
      'warn',
      ['code', 'detail'],
      'A round of the sweep has failed; once for each row of failures.',
    ),
    'sweep-recovered': event('info', ['failures'], 'A round went through again.'),
    'row-image-stays-full': event('debug', ['missing'], 'The relay’s own updates are logged with all columns.'),
  },
  jobs: {
    'resync-asked-for': event(
      'info',
      ['job'],
      'A job of `cdc-relay resync` asks for a new beginning: the term ends softly.',
    ),
    'resync-begun': event(
      'warn',
      ['job', 'saved', 'now', 'pending', 'effect'],
      'It goes on from another place of the log.',
    ),
    'job-started': event('info', ['job', 'kind', 'again'], 'A job begins, or goes on (`again`).'),
    'job-progress': event('info', ['job', 'kind'], 'How far it is; every 10 s at most.'),
    'job-waits': event('info', ['job', 'why'], 'A part of it has to be done again.'),
    'job-done': event('info', ['job', 'kind'], 'It is done.'),
    'job-stopped': event(
      'info',
      ['job', 'kind'],
      'The relay stops or leads no longer; the next leader goes on with it.',
    ),
    'job-cancelled': event('info', ['job', 'kind'], 'Somebody has cancelled it.'),
    'job-failed': event('error', ['job', 'code', 'detail', 'err?'], 'It cannot be done.'),
    'jobs-unavailable': event(
      'warn',
      ['code', 'detail'],
      'Nobody can tell whether there are jobs; once for each row of failures.',
    ),
    'jobs-available': event('info', ['failures'], 'It can be told again.'),
  },
  upkeep: {
    'published-rows-removed': event('info', ['outbox', 'rows', 'ms'], 'Retention has deleted or archived rows.'),
    'retention-failed': event('warn', ['outbox', 'code', 'detail', 'nextTryInMs'], 'It could not.'),
    'pending-limit-passed': event(
      'warn',
      ['outbox', 'pendingRows', 'oldestAgeMs', 'reason'],
      'More waits than `outboxes[].limits` says.',
    ),
    'pending-limit-kept-again': event(
      'info',
      ['outbox', 'pendingRows', 'oldestAgeMs'],
      'It is within its limits again.',
    ),
    'pending-limits-failed': event('warn', ['code', 'detail'], 'What waits could not be counted; once for each cause.'),
    'check-finding': event(
      'warn',
      ['check', 'fact', 'effect', 'fix'],
      'A check at the start has found what keeps the tail from working (docs/check.md).',
    ),
    'check-not-made': event('debug', ['code?', 'err?'], 'The checks at the start could not be made.'),
    'adoption-waits': event(
      'warn',
      ['doing', 'atMostMs'],
      '`cdc-relay adopt` waits for a transaction that uses the table.',
    ),
    'migration-waits': event(
      'warn',
      ['doing', 'atMostMs'],
      '`cdc-relay migrate` waits for a transaction that uses a table.',
    ),
  },
  secrets: {
    'secret-read-anew': event(
      'info',
      ['key'],
      'The file of a secret holds another value, which the next connection or request uses.',
    ),
    'secret-unreadable': event(
      'warn',
      ['key', 'problem', 'effect'],
      'It cannot be read, or not be used; once until it can.',
    ),
  },
  http: {
    'http-listening': event('info', ['host', 'port', 'access'], 'Status and metrics can be asked for.'),
    'asked-over-http': event(
      'info',
      ['action', 'who', 'outbox?', 'rows?', 'job?'],
      'Somebody with the token has asked for something that changes rows, jobs or the relay.',
    ),
    'http-exposed': event(
      'warn',
      ['host', 'port', 'fix'],
      'It listens beyond this machine, and anybody may ask: no token is set.',
    ),
    'http-unavailable': event('warn', ['host', 'port', 'code', 'effect'], 'It cannot listen there; it goes on trying.'),
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, LoggedEvent>>>>;

function event(level: LoggedEvent['level'], fields: readonly string[], when: string): LoggedEvent {
  return { level, fields, when };
}
