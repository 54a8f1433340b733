import { type Fault, fault } from '../model/fault.ts';
import { type Checkpoint, fileNumber, formatPosition, MAX_START_OFFSET, type Position } from '../model/position.ts';
import type { ServerFacts } from '../model/store.ts';
import { type BinlogFile, readBinlogFiles } from './binlog-files.ts';
import { readLogEnd } from './server.ts';
import type { Session } from './session.ts';
import { whereAllowed } from './where-allowed.ts';

/** What has been logged may be read before it counts as executed (a semi-synchronous replica is waited for). */
const EXECUTED_WITHIN_S = 5;
const ANSWER_WITHIN_MS = 10_000;

/**
 * Why this server cannot go on behind the checkpoint, as far as it can be told without reading its log; null: nothing
 * speaks against it, or the user may not ask.
 */
export async function positionFault(
  session: Session,
  facts: ServerFacts,
  checkpoint: Checkpoint,
): Promise<Fault | null> {
  const why = await whereAllowed(whyUnusable(session, facts, checkpoint));
  return why === null ? null : unusable(checkpoint.position, why);
}

async function whyUnusable(session: Session, facts: ServerFacts, checkpoint: Checkpoint): Promise<string | null> {
  // Without a log the source has more to say.
  if ((await readLogEnd(session, facts)) === null) return null;
  const why = fileFault(checkpoint.position, await readBinlogFiles(session));
  if (why !== null || !facts.gtidMode || facts.flavour === 'mariadb') return why;
  return gtidFault(session, checkpoint.gtidSet);
}

function unusable(position: Position, why: string): Fault {
  const at = position.file === '' ? '' : ` ${formatPosition(position)}`;
  return fault('BINLOG_POSITION_UNUSABLE', 'halt', `cannot go on behind the checkpoint${at}: ${why}`).fault;
}

function fileFault({ file, offset }: Position, files: readonly BinlogFile[]): string | null {
  if (file === '') return 'the server had no binlog when it was saved';
  const [oldest, newest] = [files.at(0), files.at(-1)];
  if (oldest === undefined || newest === undefined) return 'the server lists no binlog';
  const found = files.find(({ name }) => name === file);
  if (found === undefined) {
    return fileNumber(file) > fileNumber(newest.name)
      ? `the newest binlog on the server is ${newest.name}: its log was reset, or restored from a backup`
      : `that binlog was purged, the oldest one on the server is ${oldest.name}`;
  }
  if (offset > MAX_START_OFFSET) return 'reading can begin only within the first 4 GiB of a binlog';
  if (offset <= found.end) return null;
  return `${file} ends at ${found.end}: the log was reset, cut short by a crash, or restored from a backup`;
}

/** The saved set is exactly what lies before the checkpoint. */
async function gtidFault(session: Session, gtidSet: string | null): Promise<string | null> {
  if (gtidSet === null) return null;
  let unknown = await unknownGtids(session, gtidSet);
  if (unknown !== '') {
    const doing = 'waiting for what has been logged';
    const sql = 'SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)';
    await session.rows(doing, sql, [gtidSet, EXECUTED_WITHIN_S], ANSWER_WITHIN_MS);
    unknown = await unknownGtids(session, gtidSet);
  }
  if (unknown !== '') {
    return `the server does not know transactions that were read from it (${unknown}): it was reset, or restored from a backup`;
  }
  const sql = 'SELECT GTID_SUBTRACT(@@GLOBAL.gtid_purged, ?) AS gtids';
  const [purged] = await session.rows('asking for the GTIDs that were purged', sql, [gtidSet]);
  if (String(purged['gtids']) === '') return null;
  return `transactions behind it were purged (${inOneLine(purged['gtids'])})`;
}

async function unknownGtids(session: Session, gtidSet: string): Promise<string> {
  const sql = 'SELECT GTID_SUBTRACT(?, @@GLOBAL.gtid_executed) AS gtids';
  const [row] = await session.rows('asking for the GTIDs of the server', sql, [gtidSet]);
  return inOneLine(row['gtids']);
}

const SHOWN_CHARACTERS = 200;

function inOneLine(gtids: unknown): string {
  const text = String(gtids).replaceAll(/\s/g, '');
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}
