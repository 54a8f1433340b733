import { quoteTable } from '../model/identifier.ts';
import type { Settings } from '../model/settings.ts';
import type { Session } from '../store/session.ts';
import { grantOf, quoteAccount } from './account.ts';
import { asked, isDenied } from './asked.ts';
import { type Finding, findingsOf } from './finding.ts';
import { Grants } from './grants.ts';
import { type NeededRights, neededRights, type TablePrivilege, trialOf } from './needed-rights.ts';
import type { ServerFacts } from './server-facts.ts';

export interface RightsFacts {
  readonly tables: readonly { readonly needed: NeededRights; readonly missing: readonly TablePrivilege[] }[];
  readonly mayDump: boolean;
  /** Roles of the user that no session of it has. */
  readonly idleRoles: readonly string[];
}

/** From SHOW GRANTS where that can tell, else by trying. */
export async function readRights(session: Session, settings: Settings): Promise<RightsFacts> {
  const rows = await session.rows('reading the grants', 'SHOW GRANTS');
  const grants = Grants.parse(rows.map((row) => String(Object.values(row)[0])));
  const tables = [];
  for (const needed of neededRights(settings)) {
    const missing: TablePrivilege[] = [];
    for (const privilege of needed.privileges) {
      if (grants.hasForTable(privilege, needed.schema, needed.table)) continue;
      const tried = await asked(() => session.rows('trying a right', trialOf(privilege, needed)));
      if (!tried.known && isDenied(tried.why)) missing.push(privilege);
    }
    tables.push({ needed, missing });
  }
  const [{ role }] = await session.rows('asking for the role', 'SELECT CURRENT_ROLE() AS role');
  const isIdle = role === null || role === 'NONE';
  const names = ['REPLICATION SLAVE', 'REPLICATION REPLICA'];
  return { tables, mayDump: names.some((name) => grants.hasGlobal(name)), idleRoles: isIdle ? grants.roles : [] };
}

/** Each right that is missing, what is lost without it, and the GRANT for it. Pure. */
export function rightsFindings(facts: ServerFacts, rights: RightsFacts): Finding[] {
  return [...tableRights(facts, rights), ...serverRights(facts, rights), ...roles(facts, rights)];
}

function tableRights({ account }: ServerFacts, { tables }: RightsFacts): Finding[] {
  const check = findingsOf('rights', 'table-rights');
  return tables.map(({ needed, missing }) => {
    const { schema, table, privileges, effect, isVital } = needed;
    const name = `${schema}.${table}`;
    if (missing.length === 0) return check.good(`${account} has ${privileges.join(', ')} on ${name}`);
    const list = missing.join(', ');
    const text = {
      fact: `${account} lacks ${list} on ${name}`,
      effect,
      fix: grantOf(list, quoteTable(schema, table), account),
      stopsTail: isVital,
    };
    return isVital ? check.error(text) : check.warning(text);
  });
}

function serverRights(facts: ServerFacts, { mayDump }: RightsFacts): Finding[] {
  const { account, log, rowImage, longTransactions, version } = facts;
  const isMysql = version.flavour === 'mysql';
  const check = findingsOf('rights', 'server-rights');
  const lacks = (privilege: string, effect: string) => {
    return { fact: `${account} lacks ${privilege}`, effect, fix: grantOf(privilege, '*.*', account) };
  };
  const has = (privilege: string): Finding => check.good(`${account} has ${privilege}`);
  const found: Finding[] = [];
  const sweepOnly = 'no tail: rows go by the sweep only; outboxes with retire: keep cannot work';
  const dump = 'REPLICATION SLAVE';
  found.push(mayDump ? has(dump) : check.error({ ...lacks(dump, sweepOnly), stopsTail: true }));
  const client = isMysql ? 'REPLICATION CLIENT' : 'BINLOG MONITOR';
  const where = 'where the binlog ends cannot be asked: no tail, rows go by the sweep only';
  found.push(isOpen(log) ? has(client) : check.error({ ...lacks(client, where), stopsTail: true }));
  const session = isMysql ? 'SESSION_VARIABLES_ADMIN' : 'BINLOG ADMIN';
  const images = 'the marks of the relay are logged with all columns: about five times the bytes for every replica';
  found.push(isOpen(rowImage) ? has(session) : check.warning(lacks(session, images)));
  const trx = 'who holds rows, and for how long, cannot be told (information_schema.innodb_trx)';
  found.push(isOpen(longTransactions) ? has('PROCESS') : check.warning(lacks('PROCESS', trx)));
  return found;
}

/** Whatever else went wrong, it was not for want of a right. */
function isOpen(answer: ServerFacts['log'] | ServerFacts['rowImage'] | ServerFacts['longTransactions']): boolean {
  return answer.known || !isDenied(answer.why);
}

function roles({ account }: ServerFacts, { idleRoles }: RightsFacts): Finding[] {
  if (idleRoles.length === 0) return [];
  return [
    findingsOf('rights', 'idle-roles').warning({
      fact: `${account} has roles that are not active: ${idleRoles.join(', ')}`,
      effect: 'what they allow is not allowed: the relay does not SET ROLE',
      fix: `SET DEFAULT ROLE ${idleRoles.join(', ')} TO ${quoteAccount(account)};`,
    }),
  ];
}
