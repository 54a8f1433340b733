import type { Settings } from '../model/settings.ts';
import { grantOf } from './account.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { ServerFacts } from './server-facts.ts';

/** What kind of server it is, and whether the relay can be one of its replicas. Pure. */
export function serverRoleFindings(facts: ServerFacts, settings: Settings): Finding[] {
  return [...cluster(facts), ...readOnly(facts), ...serverIds(facts, settings)];
}

function cluster({ variables }: ServerFacts): Finding[] {
  const check = findingsOf('mysql', 'single-primary');
  if (variables.get('wsrep_on') === 'ON') {
    return [
      check.error({
        fact: 'the server is a node of a Galera cluster (wsrep_on)',
        effect: 'locks and binlogs are each node’s own: two relays could lead, positions hold for one node only',
        fix: 'not supported; use a single primary, or a replica of it that is no node of the cluster',
      }),
    ];
  }
  const isGroup = (variables.get('group_replication_group_name') ?? '') !== '';
  if (isGroup && variables.get('group_replication_single_primary_mode') === 'OFF') {
    return [
      check.error({
        fact: 'the server is in a group of several primaries (group_replication_single_primary_mode is OFF)',
        effect: 'locks are each server’s own: two relays could lead',
        fix: 'SELECT group_replication_switch_to_single_primary_mode();',
      }),
    ];
  }
  return [check.good(isGroup ? 'the group has one primary' : 'no Galera, no group of several primaries')];
}

function readOnly({ variables }: ServerFacts): Finding[] {
  const check = findingsOf('mysql', 'read-only');
  const name = ['super_read_only', 'read_only'].find((variable) => isOn(variables.get(variable)));
  if (name === undefined) return [check.good('the server takes writes')];
  return [
    check.error({
      fact: `${name} is ON`,
      effect: 'the relay can save no position and mark no row: it sends nothing',
      fix: `connect to the primary, or SET GLOBAL ${name} = OFF;`,
    }),
  ];
}

/** MariaDB has more than one word for it. */
function isOn(value: string | undefined): boolean {
  return value !== undefined && value !== 'OFF' && value !== '0';
}

function serverIds({ variables, replicaIds, account, version }: ServerFacts, settings: Settings): Finding[] {
  const check = findingsOf('mysql', 'server-id');
  const own = settings.mysql.serverId;
  const server = Number(variables.get('server_id') ?? 0);
  if (server === 0) {
    return [
      check.error({
        fact: 'server_id is 0',
        effect: 'the server refuses every replica, and with it the tail',
        fix: version.flavour === 'mysql' ? 'SET PERSIST server_id = 1;' : 'SET GLOBAL server_id = 1;',
        stopsTail: true,
      }),
    ];
  }
  const clash =
    server === own ? 'the server itself' : replicaIds.known && replicaIds.value.includes(own) && 'a replica';
  if (typeof clash === 'string') {
    return [
      check.error({
        fact: `mysql.serverId ${own} is also the id of ${clash}`,
        effect: 'the server ends the older of two dumps with one id: the two end each other for ever',
        fix: 'give the relay an id of its own, or leave mysql.serverId out: then it is derived from its name and host',
        stopsTail: true,
      }),
    ];
  }
  const found = [check.good(`server_id is ${server}, the relay's ${own}`)];
  if (replicaIds.known) return found;
  const privilege = version.flavour === 'mysql' ? 'REPLICATION SLAVE' : 'REPLICATION MASTER ADMIN';
  return [
    ...found,
    check.unknown({
      fact: `whether a replica has id ${own} too could not be asked: that needs ${privilege}`,
      fix: grantOf(privilege, '*.*', account),
    }),
  ];
}
