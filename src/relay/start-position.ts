import { fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { type Checkpoint, formatPosition } from '../model/position.ts';
import type { Settings } from '../model/settings.ts';
import type { Leader, ServerFacts, Store } from '../model/store.ts';

/**
 * Where this leader begins: the saved checkpoint, or on the first start what the configuration says. On the first
 * start the head is read before the tables are looked at: what is committed in between comes by the tail.
 */
export async function startPosition(
  store: Store,
  leader: Leader,
  facts: ServerFacts,
  settings: Settings,
  log: Log,
): Promise<Checkpoint> {
  const saved = await store.saved();
  if (saved !== null) {
    if (saved.serverUuid !== facts.serverUuid) {
      throw fault(
        'MYSQL_FOREIGN_SERVER',
        'halt',
        `the checkpoint ${formatPosition(saved.checkpoint.position)} was saved on server ${saved.serverUuid}, ` +
          `this is server ${facts.serverUuid}: its binlog is another one`,
      );
    }
    log.info('start-at-checkpoint', { position: formatPosition(saved.checkpoint.position) });
    return saved.checkpoint;
  }
  const head = await store.head();
  const { start } = settings.relay;
  for (const [index, outbox] of settings.outboxes.entries()) {
    const rows = await store.outboxRows(index);
    const table = `${outbox.schema}.${outbox.table}`;
    if (start === null && rows.any) {
      throw fault(
        'START_NOT_CHOSEN',
        'halt',
        `first start of relay '${settings.relay.name}' and ${table} already has rows` +
          `${rows.pending === null ? '' : ` (${rows.pending} pending)`}: ` +
          `set start to head (leave them alone), pending or a position`,
      );
    }
    if (start?.kind === 'pending' && rows.pending !== 0) {
      throw fault(
        'START_PENDING_UNSUPPORTED',
        'halt',
        `start: pending, and ${table} has ${rows.pending ?? 'an unknown number of'} pending rows: ` +
          `this version cannot deliver rows from before its start; use start: position, or head to leave them alone`,
      );
    }
  }
  const from: Checkpoint =
    start?.kind === 'position'
      ? {
          position: { file: start.file, offset: start.offset },
          gtidSet: null,
          lastGtid: null,
          lastCommitMicros: null,
        }
      : head;
  await store.saveFirst(leader, from, facts.serverUuid);
  log.info('start-first', { position: formatPosition(from.position), start: start?.kind ?? 'head (empty outbox)' });
  return from;
}
