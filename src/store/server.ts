import { fault } from '../model/fault.ts';
import type { Checkpoint, Position } from '../model/position.ts';
import type { ServerFacts } from '../model/store.ts';
import type { Row, Session } from './session.ts';

/** What kind of server this is. */
export async function readServerFacts(session: Session): Promise<ServerFacts> {
  const doing = 'asking for the server version';
  const [row] = await session.rows(doing, 'SELECT VERSION() AS version');
  const version = String(row['version']);
  const flavour = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
  const gtidMode = flavour === 'mariadb' || (await variable(session, 'gtid_mode')) === 'ON';
  return { version, flavour, serverUuid: session.serverUuid, gtidMode };
}

/** Where the log ends now; with GTIDs, exactly the transactions before that place. */
export async function readHead(session: Session, facts: ServerFacts): Promise<Checkpoint> {
  const status = await logStatus(session, facts);
  if (status === undefined) {
    throw fault('BINLOG_DISABLED', 'halt', 'the server writes no binlog (log_bin is off): there is nothing to tail');
  }
  const position = positionIn(status);
  return {
    position,
    gtidSet: facts.gtidMode ? await gtidSetAt(session, facts, status, position) : null,
    lastBegin: null,
    lastGtid: null,
    lastCommitMicros: null,
  };
}

/** The same without GTIDs; null where the server writes no binlog. */
export async function readLogEnd(session: Session, facts: ServerFacts): Promise<Position | null> {
  const status = await logStatus(session, facts);
  return status === undefined ? null : positionIn(status);
}

function positionIn(status: Row): Position {
  return { file: String(status['File']), offset: Number(status['Position']) };
}

/** `SHOW MASTER STATUS` is gone from MySQL 8.4 on; its successor came with 8.2. */
async function logStatus(session: Session, facts: ServerFacts): Promise<Row | undefined> {
  const [major, minor] = facts.version.split('.').map(Number);
  const successor = facts.flavour === 'mysql' && (major > 8 || (major === 8 && minor >= 2));
  const sql = successor ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS';
  return (await session.rows('asking for the binlog head', sql)).at(0);
}

async function gtidSetAt(session: Session, facts: ServerFacts, status: Row, position: Position): Promise<string> {
  if (facts.flavour === 'mysql') return String(status['Executed_Gtid_Set']).replaceAll(/\s/g, '');
  const sql = 'SELECT BINLOG_GTID_POS(?, ?) AS gtid';
  const [row] = await session.rows('asking for the GTID position', sql, [position.file, position.offset]);
  return typeof row['gtid'] === 'string' ? row['gtid'] : '';
}

async function variable(session: Session, name: string): Promise<string | null> {
  const [row] = await session.rows('asking for a server variable', 'SHOW GLOBAL VARIABLES LIKE ?', [name]);
  return (row as Row | undefined) === undefined ? null : String(row['Value']);
}
