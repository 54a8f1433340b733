import { fault, type Fault, RelayError } from '../model/fault.ts';
import type { Position } from '../model/position.ts';
import { readBinlogFiles } from './binlog-files.ts';
import { readServerFacts } from './server.ts';
import type { Row, Session } from './session.ts';

/** Events looked at in one statement: the server reads on from the place named, not from the beginning of the file. */
const PAGE_EVENTS = 10_000;
const FIRST_OFFSET = 4;
/** A dump begins nowhere else: its command has 32 bits for the offset. */
const MAX_OFFSET = 0xffff_ffff;

/** Events in front of which no transaction is open. */
const BETWEEN =
  /^(anonymous_)?gtid|^(rotate|stop|format_desc|previous_gtids|gtid_list|binlog_checkpoint|start_encryption)$/i;
const GTID = /^gtid(_tagged)?(_log)?$/i;

/** Throws a `RelayError` (BINLOG_POSITION_UNUSABLE) that says why nobody can begin there. */
export async function checkPlace(session: Session, { file, offset }: Position): Promise<void> {
  const logs = await readBinlogFiles(session);
  const found = logs.find(({ name }) => name === file);
  if (found === undefined) {
    throw unusable(
      `the server has no binlog file ${file}; it has ${logs.at(0)?.name ?? 'none'} to ${logs.at(-1)?.name ?? 'none'}`,
    );
  }
  if (offset < FIRST_OFFSET || offset > Math.min(found.end, MAX_OFFSET)) {
    throw unusable(`${file} ends at ${found.end}: ${offset} is no place in it where a reader can begin`);
  }
  if (offset === found.end) return;
  const next = await eventsFrom(session, file, offset, 1).catch((error: unknown) => {
    if (!(error instanceof RelayError) || error.fault.disposition === 'retry') throw error;
    throw unusable(`no event begins at ${file}:${offset}`);
  });
  const type = next.at(0)?.type;
  if (type !== undefined && !BETWEEN.test(type)) {
    throw unusable(`${file}:${offset} is inside of a transaction (${type}); begin in front of its Gtid event`);
  }
}

/**
 * The place behind which every transaction is that is not in `gtidSet`: the first such is the next one. Looks at the
 * head of each file from the last one back, then reads one file up to the place. MySQL with GTIDs only. Throws a
 * `RelayError`.
 */
export async function placeOfGtids(session: Session, gtidSet: string): Promise<Position> {
  const facts = await readServerFacts(session);
  if (facts.flavour === 'mariadb' || !facts.gtidMode) {
    throw unusable(
      facts.flavour === 'mariadb'
        ? 'MariaDB has no GTID sets: name the position (BINLOG_GTID_POS gives GTIDs of a position)'
        : 'gtid_mode is not ON on this server',
    );
  }
  const isKnown = await isSubset(session, gtidSet, null);
  if (!isKnown) throw unusable('the set names transactions that this server does not have (gtid_executed)');
  const files = (await readBinlogFiles(session)).reverse();
  for (const { name: file } of files) {
    const previous = (await eventsFrom(session, file, FIRST_OFFSET, 3)).find(({ type }) =>
      /^previous_gtids$/i.test(type),
    );
    if (previous !== undefined && (await isSubset(session, previous.info, gtidSet))) {
      return firstBehind(session, file, gtidSet);
    }
  }
  throw unusable('transactions that are not in the set are in no binlog file any more: they have been purged');
}

async function firstBehind(session: Session, file: string, gtidSet: string): Promise<Position> {
  let offset = FIRST_OFFSET;
  for (;;) {
    const events = await eventsFrom(session, file, offset, PAGE_EVENTS);
    const gtids = events.filter(({ type }) => GTID.test(type));
    const inSet = await leading(
      session,
      gtids.map(({ info }) => gtidOf(info)),
      gtidSet,
    );
    if (inSet < gtids.length) return { file, offset: gtids[inSet].offset };
    if (events.length > 0) offset = events[events.length - 1].end;
    if (events.length < PAGE_EVENTS) return { file, offset };
  }
}

/** How many of the first ones are all in the set. */
async function leading(session: Session, gtids: readonly string[], gtidSet: string): Promise<number> {
  let known = 0;
  let unknown = gtids.length + 1;
  for (let look = gtids.length; unknown - known > 1; look = Math.floor((known + unknown) / 2)) {
    if (await isSubset(session, gtids.slice(0, look).join(','), gtidSet)) known = look;
    else unknown = look;
  }
  return known;
}

/** `of` null: of what the server has executed. */
async function isSubset(session: Session, set: string, of: string | null): Promise<boolean> {
  const doing = 'comparing GTID sets';
  try {
    const [row] = await session.rows(
      doing,
      `SELECT GTID_SUBSET(?, ${of === null ? '@@GLOBAL.gtid_executed' : '?'}) AS is_in`,
      of === null ? [set] : [set, of],
    );
    return Number(row['is_in']) === 1;
  } catch (error) {
    if (error instanceof RelayError && error.fault.code === 'MYSQL_QUERY_FAILED' && of === null) {
      throw unusable('that is no GTID set');
    }
    throw error;
  }
}

interface Event {
  readonly type: string;
  readonly offset: number;
  readonly end: number;
  readonly info: string;
}

async function eventsFrom(session: Session, file: string, offset: number, limit: number): Promise<Event[]> {
  const rows = await session.rows('reading binlog events', `SHOW BINLOG EVENTS IN ? FROM ${offset} LIMIT ${limit}`, [
    file,
  ]);
  return rows.map((row) => ({
    type: textOf(row, 'Event_type'),
    offset: Number(row['Pos']),
    end: Number(row['End_log_pos']),
    info: textOf(row, 'Info'),
  }));
}

function textOf(row: Row, name: string): string {
  const value = row[name];
  return typeof value === 'string' ? value : '';
}

/** `SET @@SESSION.GTID_NEXT= 'uuid:23'`. */
function gtidOf(info: string): string {
  return /'([^']*)'/.exec(info)?.[1] ?? '';
}

function unusable(detail: string): RelayError {
  const disposition: Fault['disposition'] = 'halt';
  return fault('BINLOG_POSITION_UNUSABLE', disposition, detail);
}
