import type { Settings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';
import { grantOf } from './account.ts';
import type { ServerFacts } from './server-facts.ts';

/** Filters of the log, and servers that do not log what they replicate: the tail stays empty, nothing says so (J2). Pure. */
export function logFilterFindings(facts: ServerFacts, settings: Settings): Finding[] {
  if (facts.variables.get('log_bin') === 'OFF') return [];
  return [...filters(facts, settings), ...replica(facts)];
}

/** With rows in the log, the filters are about the schema of the table, not the session's. */
function filters({ log, account, version }: ServerFacts, settings: Settings): Finding[] {
  const check = findingsOf('binlog', 'binlog-filters');
  if (!log.known) {
    return [
      check.unknown({
        fact: 'binlog_do_db and binlog_ignore_db could not be read: that needs REPLICATION CLIENT',
        fix: grantOf(version.flavour === 'mysql' ? 'REPLICATION CLIENT' : 'BINLOG MONITOR', '*.*', account),
      }),
    ];
  }
  if (log.value === null) return [];
  const { doDb, ignoreDb } = log.value;
  const isLogged = (schema: string): boolean => (doDb.length > 0 ? doDb.includes(schema) : !ignoreDb.includes(schema));
  const filter = doDb.length > 0 ? `binlog_do_db = ${doDb.join(', ')}` : `binlog_ignore_db = ${ignoreDb.join(', ')}`;
  const missing = [...new Set(settings.outboxes.map(({ schema }) => schema))].filter((schema) => !isLogged(schema));
  const found = missing.map((schema) =>
    check.error({
      fact: `changes in schema ${schema} are not logged (${filter})`,
      effect: 'the tail never sees its outbox: rows go by the sweep only, with retire: keep they are never sent',
      fix: 'take the filter out of the server’s options and restart it',
      stopsTail: true,
    }),
  );
  const { database } = settings.mysql;
  if (!isLogged(database)) {
    found.push(
      check.warning({
        fact: `changes in schema ${database}, the relay's own, are not logged (${filter})`,
        effect: 'the canary cannot come by; a replica that is promoted has no position of the relay',
        fix: 'take the filter out of the server’s options and restart it',
      }),
    );
  }
  return found.length > 0 ? found : [check.good('no filter keeps the outboxes out of the log')];
}

function replica({ channels, variables, account, version }: ServerFacts): Finding[] {
  const check = findingsOf('binlog', 'replica');
  if (!channels.known) {
    return [
      check.unknown({
        fact: 'whether the server is a replica could not be asked: that needs REPLICATION CLIENT',
        fix: grantOf(version.flavour === 'mysql' ? 'REPLICATION CLIENT' : 'REPLICA MONITOR', '*.*', account),
      }),
    ];
  }
  if (channels.value.length === 0) return [check.good('the server is no replica')];
  const sources = channels.value.map(({ source }) => source).join(', ');
  const found: Finding[] = [];
  const logsUpdates = variables.get('log_replica_updates') ?? variables.get('log_slave_updates');
  if (logsUpdates === 'OFF') {
    found.push(
      check.error({
        fact: `the server is a replica of ${sources} and log_replica_updates is OFF`,
        effect: 'what it replicates is not in its own log: the tail stays empty',
        fix: 'connect to the primary, or start the server with --log-replica-updates',
        stopsTail: true,
      }),
    );
  }
  const filtering = channels.value.flatMap((channel) => channel.filters);
  if (filtering.length > 0) {
    found.push(
      check.warning({
        fact: `the server is a replica of ${sources} with filters: ${filtering.join('; ')}`,
        effect: 'rows that it does not replicate never reach the relay',
        fix: 'connect to the primary, or take the filters out',
      }),
    );
  }
  if (found.length > 0) return found;
  return [
    check.warning({
      fact: `the server is a replica of ${sources}`,
      effect: 'rows come as late as it lags, and what the relay marks here is not marked on the primary',
      fix: 'connect to the primary',
    }),
  ];
}
