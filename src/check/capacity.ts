import { grantOf } from './account.ts';
import { isDenied } from './asked.ts';
import { type Finding, findingsOf } from './finding.ts';
import { LONG_TRANSACTION_SECONDS, type ServerFacts } from './server-facts.ts';

/**
 * Connections of one relay at most: leader, flush, rows, sweep, jobs, limits, retention, HTTP's look, the dump's two, and
 * two for what people ask over HTTP.
 */
const RELAY_CONNECTIONS = 12;
const SHORT_TIMEOUT_SECONDS = 30;

/** Time-outs, connections, and who else is at work. Pure. */
export function capacityFindings(facts: ServerFacts): Finding[] {
  return [...timeouts(facts), ...connections(facts), ...transactions(facts)];
}

function timeouts({ variables }: ServerFacts): Finding[] {
  const effects = {
    wait_timeout: 'connections that rest are cut: the relay opens them again and again, and says so in its log',
    net_write_timeout: 'the relay sets its own for the dump; a proxy or a replica that is slow is cut',
  };
  return (['wait_timeout', 'net_write_timeout'] as const).map((name) => {
    const check = findingsOf('mysql', name.replaceAll('_', '-'));
    const seconds = Number(variables.get(name) ?? SHORT_TIMEOUT_SECONDS);
    if (seconds >= SHORT_TIMEOUT_SECONDS) return check.good(`${name} is ${seconds} s`);
    return check.warning({
      fact: `${name} is ${seconds} s`,
      effect: effects[name],
      fix: `SET GLOBAL ${name} = ${name === 'wait_timeout' ? 28_800 : 60};`,
    });
  });
}

function connections({ variables, threadsConnected }: ServerFacts): Finding[] {
  const check = findingsOf('mysql', 'connections');
  const perUser = Number(variables.get('max_user_connections') ?? 0);
  if (perUser > 0 && perUser < RELAY_CONNECTIONS) {
    return [
      check.warning({
        fact: `max_user_connections is ${perUser}; a relay uses up to ${RELAY_CONNECTIONS}`,
        effect: 'work waits until a connection is free, or the relay begins again and again',
        fix: `SET GLOBAL max_user_connections = 0;`,
      }),
    ];
  }
  const most = Number(variables.get('max_connections') ?? 0);
  if (threadsConnected === null || most === 0) return [];
  const free = most - threadsConnected;
  if (free >= RELAY_CONNECTIONS) return [check.good(`${free} of ${most} connections are free`)];
  return [
    check.warning({
      fact: `${Math.max(0, free)} of ${most} connections are free (max_connections); a relay uses up to ${RELAY_CONNECTIONS}`,
      effect: 'the relay, or the application, is refused when they run out',
      fix: `SET GLOBAL max_connections = ${most + 2 * RELAY_CONNECTIONS};`,
    }),
  ];
}

function transactions({ longTransactions, account }: ServerFacts): Finding[] {
  const check = findingsOf('mysql', 'long-transactions');
  if (!longTransactions.known) {
    const needs = isDenied(longTransactions.why) ? 'that needs PROCESS' : longTransactions.why.detail;
    return [
      check.unknown({
        fact: `transactions that are open for long could not be looked for: ${needs}`,
        fix: grantOf('PROCESS', '*.*', account),
      }),
    ];
  }
  const [oldest] = longTransactions.value;
  if (longTransactions.value.length === 0) {
    return [check.good(`no transaction is open for ${LONG_TRANSACTION_SECONDS} s`)];
  }
  const { length } = longTransactions.value;
  return [
    check.warning({
      fact: `${length === 1 ? 'a transaction is' : `${length} transactions are`} open for a long time: the oldest for ${oldest.seconds} s (thread ${oldest.thread})`,
      effect:
        'rows that it holds are delivered when it ends; old row versions pile up, looks into the outbox get slower',
      fix: `KILL ${oldest.thread}; or end it where it was begun`,
    }),
  ];
}
