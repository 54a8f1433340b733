import { type Fault, fault, RelayError } from '../model/fault.ts';
import type { Jobs } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import { type Checkpoint, comparePositions, formatPosition, type Position } from '../model/position.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { Leader, SavedOffsets, ServerFacts, Store } from '../model/store.ts';
import { resyncStart } from './resync-start.ts';

/** Where a leader begins. What lies before `high` may have been sent. */
export interface Start {
  readonly from: Checkpoint;
  readonly high: Position;
  /** What was saved and is of no use; null: nothing was, or it is where this leader begins. */
  readonly abandoned: SavedOffsets | null;
}

export interface StartDeps {
  readonly store: Store;
  readonly leader: Leader;
  readonly facts: ServerFacts;
  readonly settings: Settings;
  readonly log: Log;
  /** Among them may be one that says where to begin. */
  readonly jobs?: Jobs;
}

/** Before everything. */
const NOWHERE: Checkpoint = {
  position: { file: '', offset: 0 },
  gtidSet: null,
  lastBegin: null,
  lastGtid: null,
  lastCommitMicros: null,
};

/**
 * Where this leader begins: at the saved checkpoint; on the first start where the configuration says; at the head where
 * the checkpoint is of no use (`unusable` says why, or another server answers). Wherever it does not begin at a
 * checkpoint everything is parked: what is pending is delivered from the tables before the tail's rows follow.
 */
export async function startPosition(deps: StartDeps, unusable: Fault | null): Promise<Start> {
  const { store, log } = deps;
  const saved = await store.saved();
  if (saved === null) return firstStart(deps);
  const { jobs } = deps;
  const resync =
    jobs === undefined ? null : await resyncStart({ ...deps, jobs, nowhere: NOWHERE, head: () => head(store) }, saved);
  if (resync !== null) return resync;
  const why = await faultOf(deps, saved, unusable);
  if (why !== null) return beginAnew(deps, saved, why);
  const { checkpoint, high } = saved;
  log.info('start-at-checkpoint', { position: formatPosition(checkpoint.position) });
  const furthest = comparePositions(high, checkpoint.position) > 0 ? high : checkpoint.position;
  return { from: checkpoint, high: furthest, abandoned: null };
}

/** What the server says of itself tells more than what a stream has died of. */
async function faultOf({ store, facts, settings }: StartDeps, saved: SavedOffsets, died: Fault | null) {
  if (saved.serverUuid !== facts.serverUuid) return foreign(saved, facts);
  const isRead = settings.sweep.mode === 'tail';
  return (isRead ? await store.positionFault(saved.checkpoint) : null) ?? died;
}

function foreign({ checkpoint, serverUuid }: SavedOffsets, facts: ServerFacts): Fault {
  const at = formatPosition(checkpoint.position);
  const detail = `the checkpoint ${at} was saved on server ${serverUuid}, this is server ${facts.serverUuid}: its binlog is another one`;
  return { code: 'MYSQL_FOREIGN_SERVER', disposition: 'halt', detail };
}

async function beginAnew(deps: StartDeps, saved: SavedOffsets, why: Fault): Promise<Start> {
  const { store, leader, facts, settings, log } = deps;
  // What is only kept cannot be delivered from its table: a person says where to go on.
  if (settings.outboxes.some(isKept)) throw new RelayError({ ...why, disposition: 'halt' });
  const checkpoint = await head(store);
  log.error('position-unusable', {
    code: why.code,
    detail: why.detail,
    saved: formatPosition(saved.checkpoint.position),
    now: formatPosition(checkpoint.position),
    effect: 'what is pending is delivered from the tables, then the tail goes on from here; nothing is skipped',
  });
  const { position } = checkpoint;
  const { serverUuid } = facts;
  await store.begin(leader, { checkpoint, high: position, serverUuid, parkEverything: why.code });
  return { from: checkpoint, high: position, abandoned: saved };
}

async function firstStart(deps: StartDeps): Promise<Start> {
  const { store, leader, facts, settings, log } = deps;
  const { start } = settings.relay;
  for (const [index, outbox] of settings.outboxes.entries()) {
    const rows = await store.outboxRows(index);
    if (start === null && rows.any) throw notChosen(settings.relay.name, outbox, rows.pending);
    if (start?.kind !== 'head' || isKept(outbox) || rows.pending === 0) continue;
    // Before the head is read: what is committed from now on is news.
    const left = await store.leaveHistory(leader, index);
    log.info('history-counts-as-published', { table: `${outbox.schema}.${outbox.table}`, rows: left });
  }
  const end = await head(store);
  const from: Checkpoint =
    start?.kind === 'position' ? { ...NOWHERE, position: { file: start.file, offset: start.offset } } : end;
  const high = comparePositions(end.position, from.position) > 0 ? end.position : from.position;
  // A row that is in the log before the head may become visible behind it: even an empty table is swept once (S7, M11).
  const parkEverything = settings.outboxes.every(isKept) ? null : 'START';
  await store.begin(leader, { checkpoint: from, high, serverUuid: facts.serverUuid, parkEverything });
  log.info('first-start', { position: formatPosition(from.position) });
  return { from, high, abandoned: null };
}

/** Where there is no log, rows go by the sweep alone. */
async function head(store: Store): Promise<Checkpoint> {
  return (await store.logEnd()) === null ? NOWHERE : store.head();
}

function isKept({ retire }: OutboxSettings): boolean {
  return retire === 'keep';
}

function notChosen(name: string, { schema, table }: OutboxSettings, pending: number | null): RelayError {
  return fault(
    'START_NOT_CHOSEN',
    'halt',
    `first start of relay '${name}' and ${schema}.${table} already has rows` +
      `${pending === null ? '' : ` (${pending} pending)`}: set start to head (they count as published), ` +
      `pending (those that are pending are delivered) or a position`,
  );
}
