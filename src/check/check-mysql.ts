import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { Session } from '../store/session.ts';
import type { Asked } from './asked.ts';
import { type Canary, flyCanary } from './canary.ts';
import { canaryFindings } from './canary-finding.ts';
import { capacityFindings } from './capacity.ts';
import type { Finding } from './finding.ts';
import { logFilterFindings } from './log-filters.ts';
import { logSettingFindings } from './log-settings.ts';
import { connectionFindings } from './mysql-connection.ts';
import { outboxRowFindings } from './outbox-rows.ts';
import { outboxTableFindings } from './outbox-tables.ts';
import { relayTableFindings } from './relay-tables.ts';
import { readRights, rightsFindings } from './rights.ts';
import { readHasPosition, readRows, type RowFacts } from './row-facts.ts';
import { readServerFacts, type ServerFacts } from './server-facts.ts';
import { serverRoleFindings } from './server-role.ts';
import { versionFindings } from './server-version.ts';
import { readSessionSettings, sessionSettingFindings } from './session-settings.ts';
import { readTables, type TableFacts } from './table-facts.ts';

export interface MysqlCheck {
  readonly server: ServerFacts;
  readonly canary: Canary | null;
  /** Of pending rows. */
  readonly topics: readonly string[];
  readonly findings: readonly Finding[];
}

/** Server, rights and tables: what can be asked in a moment, and writes nothing. Throws a `RelayError`. */
export async function checkServer(
  session: Session,
  settings: Settings,
): Promise<{ server: ServerFacts; tables: TableFacts; findings: Finding[] }> {
  const server = await readServerFacts(session);
  const rights = await readRights(session, settings);
  const tables = await readTables(session, settings);
  const isRead = settings.sweep.mode === 'tail';
  const findings = [
    ...connectionFindings(settings.mysql),
    ...versionFindings(server.version),
    ...serverRoleFindings(server, settings),
    ...(isRead ? [...logSettingFindings(server), ...logFilterFindings(server, settings)] : []),
    ...rightsFindings(server, rights),
    ...relayTableFindings(tables, settings),
    ...outboxTableFindings(tables, settings),
  ];
  return { server, tables, findings };
}

/** All of it. Throws a `RelayError` when the server cannot be asked. */
export async function checkMysql(settings: Settings, log: Log): Promise<MysqlCheck> {
  const session = await Session.open(settings.mysql, log);
  try {
    const { server, tables, findings } = await checkServer(session, settings);
    const rows = await lookAtRows(settings, tables, log);
    const hasPosition = await readHasPosition(session, settings);
    const isRead = settings.sweep.mode === 'tail' && server.variables.get('log_bin') !== 'OFF';
    const sessions = isRead ? await readSessionSettings(session, server) : null;
    const canary = isRead ? await flyCanary(session, server, settings, log) : null;
    return {
      server,
      canary,
      topics: [...new Set(rows.flatMap((answer) => (answer.known ? answer.value.topics : [])))],
      findings: [
        ...findings,
        ...capacityFindings(server),
        ...(isRead ? sessionSettingFindings(sessions, server, settings) : []),
        ...outboxRowFindings(rows, hasPosition, settings),
        ...(canary === null ? [] : canaryFindings(canary, server)),
      ],
    };
  } finally {
    session.destroy();
  }
}

/** On a session of their own, which a look that takes too long ends. */
async function lookAtRows(settings: Settings, tables: TableFacts, log: Log): Promise<Asked<RowFacts>[]> {
  const found: Asked<RowFacts>[] = [];
  for (const [index, outbox] of settings.outboxes.entries()) {
    const session = await Session.open(settings.mysql, log);
    try {
      found.push(await readRows(session, outbox, tables.outboxes[index]));
    } finally {
      session.destroy();
    }
  }
  return found;
}
