import { type Finding, findingsOf } from './finding.ts';
import type { ServerFacts } from './server-facts.ts';

const DAY_SECONDS = 86_400;

/** Settings of the log that make the tail empty, slow or wrong, most of them without an error (J2). Pure. */
export function logSettingFindings({ variables, version }: ServerFacts): Finding[] {
  if (variables.get('log_bin') === 'OFF') {
    return [
      findingsOf('binlog', 'log-bin').error({
        fact: 'log_bin is OFF: the server writes no binlog',
        effect: 'there is nothing to tail: rows go by the sweep only; outboxes with retire: keep cannot work',
        fix: 'start the server with --log-bin',
        stopsTail: true,
      }),
    ];
  }
  const isMysql = version.flavour === 'mysql';
  return [
    findingsOf('binlog', 'log-bin').good('log_bin is ON'),
    ...format(variables, isMysql),
    ...rowImage(variables, isMysql),
    ...rowMetadata(variables, isMysql),
    ...expiry(variables, isMysql),
    ...sizeLimit(variables, isMysql),
    ...durability(variables, isMysql),
    ...(isMysql ? [...gtids(variables), ...order(variables)] : []),
  ];
}

type Variables = ServerFacts['variables'];

/** MariaDB keeps what is set only in its option file. */
function set(isMysql: boolean, assignment: string): string {
  return isMysql ? `SET PERSIST ${assignment};` : `SET GLOBAL ${assignment}; and the same in the option file`;
}

function format(variables: Variables, isMysql: boolean): Finding[] {
  const check = findingsOf('binlog', 'binlog-format');
  const value = variables.get('binlog_format') ?? 'ROW';
  if (value === 'ROW') return [check.good('binlog_format is ROW')];
  const notSent =
    'rows written as statements are not in the log: they go by the sweep, with retire: keep they are never sent';
  // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE: InnoDB at READ COMMITTED.
  const refused = 'the server refuses every write at READ COMMITTED, the isolation of the relay: nothing is sent';
  return [
    check.error({
      fact: `binlog_format is ${value}`,
      effect: value === 'STATEMENT' ? refused : notSent,
      fix: `${set(isMysql, "binlog_format = 'ROW'")} then reconnect the application's pools`,
      stopsTail: true,
    }),
  ];
}

function rowImage(variables: Variables, isMysql: boolean): Finding[] {
  const check = findingsOf('binlog', 'binlog-row-image');
  const value = variables.get('binlog_row_image') ?? 'FULL';
  if (value !== 'MINIMAL' && value !== 'NOBLOB') return [check.good(`binlog_row_image is ${value}`)];
  return [
    check.warning({
      fact: `binlog_row_image is ${value}`,
      effect:
        'columns left to their defaults are not in the log: each such row costs a SELECT, and is lost to the tail when it is gone by then',
      fix: `${set(isMysql, "binlog_row_image = 'FULL'")} then reconnect the application's pools`,
    }),
  ];
}

function rowMetadata(variables: Variables, isMysql: boolean): Finding[] {
  const check = findingsOf('binlog', 'binlog-row-metadata');
  const value = variables.get('binlog_row_metadata') ?? 'FULL';
  if (value === 'FULL') return [check.good('binlog_row_metadata is FULL')];
  return [
    check.warning({
      fact: `binlog_row_metadata is ${value}`,
      effect:
        'the log does not name its columns: after an ALTER of an outbox the relay has to read ahead to tell them apart',
      fix: set(isMysql, "binlog_row_metadata = 'FULL'"),
    }),
  ];
}

function expiry(variables: Variables, isMysql: boolean): Finding[] {
  const check = findingsOf('binlog', 'binlog-expiry');
  if (variables.get('basedir')?.startsWith('/rdsdbbin/') === true) {
    return [
      check.unknown({
        fact: 'for how long binlogs are kept is not in the variables of Amazon RDS and Aurora',
        effect: 'unless they are told to keep them they purge them at once: the position is gone after each pause',
        fix: "CALL mysql.rds_show_configuration;\nCALL mysql.rds_set_configuration('binlog retention hours', 168);",
      }),
    ];
  }
  const seconds =
    Number(variables.get('binlog_expire_logs_seconds') ?? 0) ||
    Math.round(Number(variables.get('expire_logs_days') ?? 0) * DAY_SECONDS);
  if (seconds === 0) return [check.good('binlogs do not expire by age')];
  if (variables.get('binlog_expire_logs_auto_purge') === 'OFF') {
    return [check.good('binlogs are not purged by the server (binlog_expire_logs_auto_purge is OFF)')];
  }
  if (seconds >= DAY_SECONDS) return [check.good(`binlogs are kept for ${periodText(seconds)}`)];
  return [
    check.warning({
      fact: `binlogs are kept for ${periodText(seconds)} (binlog_expire_logs_seconds = ${seconds})`,
      effect:
        'after a longer outage the position is gone: rows then go by the table, with retire: keep the relay halts',
      fix: set(isMysql, 'binlog_expire_logs_seconds = 604800'),
    }),
  ];
}

/** MariaDB 11.4 and Percona. */
function sizeLimit(variables: Variables, isMysql: boolean): Finding[] {
  const name = ['max_binlog_total_size', 'binlog_space_limit'].find((each) => Number(variables.get(each) ?? 0) > 0);
  if (name === undefined) return [];
  return [
    findingsOf('binlog', 'binlog-expiry').warning({
      fact: `binlogs are purged when they are larger than ${variables.get(name)} bytes in all (${name})`,
      effect: 'a burst of writes purges the position, however young it is',
      fix: set(isMysql, `${name} = 0`),
    }),
  ];
}

function durability(variables: Variables, isMysql: boolean): Finding[] {
  return ['sync_binlog', 'innodb_flush_log_at_trx_commit'].map((name) => {
    const check = findingsOf('binlog', name.replaceAll('_', '-'));
    const value = variables.get(name) ?? '1';
    if (value === '1') return check.good(`${name} is 1`);
    return check.warning({
      fact: `${name} is ${value}`,
      effect:
        'after a crash of the machine log and tables may differ: rows that were sent may not exist, or come again under other ids',
      fix: set(isMysql, `${name} = 1`),
    });
  });
}

function gtids(variables: Variables): Finding[] {
  const check = findingsOf('binlog', 'gtid-mode');
  const value = variables.get('gtid_mode') ?? 'OFF';
  if (value === 'ON') return [check.good('gtid_mode is ON')];
  return [
    check.warning({
      fact: `gtid_mode is ${value}`,
      effect: 'a reset or restored log is told by its last transaction alone',
      fix: 'turn GTIDs on, in the steps of the MySQL manual ("Enabling GTID Transactions Online")',
    }),
  ];
}

function order(variables: Variables): Finding[] {
  const check = findingsOf('binlog', 'binlog-order-commits');
  if (variables.get('binlog_order_commits') !== 'OFF') return [check.good('binlog_order_commits is ON')];
  return [
    check.error({
      fact: 'binlog_order_commits is OFF',
      effect:
        'a later transaction may be visible before an earlier one of the log: rows of an aggregate may change places',
      fix: 'SET PERSIST binlog_order_commits = ON;',
    }),
  ];
}

const UNITS = [
  ['d', DAY_SECONDS],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const;

/** `30 d`, `4 h 59 m`: two units at the most. */
export function periodText(seconds: number): string {
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  if (at < 0) return '0 s';
  const [unit, size] = UNITS[at];
  const parts = [`${Math.floor(seconds / size)} ${unit}`];
  for (const [smaller, smallerSize] of UNITS.slice(at + 1, at + 2)) {
    const rest = Math.floor((seconds % size) / smallerSize);
    if (rest > 0) parts.push(`${rest} ${smaller}`);
  }
  return parts.join(' ');
}
