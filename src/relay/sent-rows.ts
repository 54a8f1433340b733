import type { AckWindow } from '../delivery/ack-window.ts';
import type { Batch } from '../delivery/batch.ts';
import { writeFingerprint } from '../delivery/fingerprint.ts';
import { type Fingerprint, inChunks, SentBlock } from '../delivery/sent-block.ts';
import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import { type RowId, shownId } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { RelayStats } from '../model/stats.ts';
import type { SavedOffsets, ServerFacts, Store } from '../model/store.ts';

/** Of an outbox. */
const MOST_ROWS = 100_000;
/** A replica that was promoted while it was further behind has other troubles. */
const KEPT_MS = 600_000;
const BLOCK_ROWS = 4_096;
/** What is forgotten is forgotten by the block. */
const BLOCK_MS = 60_000;
const ROWS_A_READ = 500;
const SHOWN_IDS = 20;

export interface ComparedWith {
  readonly store: Store;
  readonly facts: ServerFacts;
  readonly outboxes: readonly OutboxSettings[];
  /** What was saved and is of no use here, where the position has just been given up. */
  readonly abandoned: SavedOffsets | null;
  readonly log: Log;
  readonly stats: RelayStats;
}

/**
 * The rows that Kafka has taken in the last minutes, over all terms of this process. A replica that is promoted while it
 * is behind lacks some of them, and may give their ids to others: what consumers have seen is not in the database then.
 * Nobody else can tell which rows those are: the old server is gone.
 */
export class SentRows {
  readonly #clock: Clock;
  /** By outbox, oldest first. */
  #blocks = new Map<number, SentBlock[]>();
  #serverUuid = '';
  /** What was given up when the comparison that follows did not come to its end. */
  #abandoned: SavedOffsets | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Acknowledged; its transactions are not behind a committed checkpoint yet. */
  add(batch: Batch, window: AckWindow): void {
    const { runCount } = batch;
    let row = 0;
    for (let from = 0; from < runCount;) {
      let end = from;
      const { outbox, hasKeys } = batch.run(from);
      const isAlike = (i: number): boolean => batch.run(i).outbox === outbox && batch.run(i).hasKeys === hasKeys;
      let rows = 0;
      for (; end < runCount && isAlike(end); end++) rows += batch.run(end).rows;
      const block = this.#block(outbox, hasKeys);
      block.add(batch, row, rows);
      for (let i = from; i < end; i++) block.place(batch.run(i).rows, batch.run(i).transaction, window);
      row += rows;
      from = end;
    }
  }

  /**
   * At the begin of a term: where rows of another server, or of a log that is gone, are known, they are looked up in
   * this one, and those that it lacks are told. Throws a `RelayError`; the next term compares again then.
   */
  async compare(deps: ComparedWith): Promise<void> {
    const { facts, outboxes } = deps;
    this.#abandoned = deps.abandoned ?? this.#abandoned;
    this.#forgetOld();
    const isOther = (block: SentBlock): boolean => block.serverUuid !== facts.serverUuid;
    if (this.#abandoned !== null || [...this.#blocks.values()].flat().some(isOther)) {
      for (const [outbox, settings] of outboxes.entries()) await this.#compareOutbox(outbox, settings, deps);
      this.#blocks = new Map();
      this.#abandoned = null;
    }
    this.#serverUuid = facts.serverUuid;
  }

  async #compareOutbox(outbox: number, settings: OutboxSettings, { store, log, stats }: ComparedWith): Promise<void> {
    const sent = this.#sent(outbox, settings.retire === 'delete');
    const missing = new Map(sent);
    const print = new Uint32Array(2);
    for (const ids of inChunks([...sent.keys()], ROWS_A_READ)) {
      for (const [id, key] of await store.idempotencyKeys(outbox, ids)) {
        writeFingerprint(print, 0, key);
        // Another row has its id otherwise.
        if (sent.get(id)?.low === print[0] && sent.get(id)?.high === print[1]) missing.delete(id);
      }
    }
    const table = `${settings.schema}.${settings.table}`;
    log.info('sent-rows-compared', { table, rows: sent.size, missing: missing.size });
    if (missing.size === 0) return;
    stats.sentRowsMissing[outbox] = (stats.sentRowsMissing[outbox] ?? 0) + missing.size;
    log.error('sent-rows-missing', {
      table,
      rows: missing.size,
      ids: shown([...missing.keys()]),
      effect: 'these rows were sent to Kafka, and this server does not have them: consumers know more than it does',
    });
  }

  /**
   * Rows that the server may lack. `high` was saved behind everything before it: who has that has all of those. Deleted
   * rows that may have been deleted here, too, cannot be told from rows that never came.
   */
  #sent(outbox: number, isDeleted: boolean): Map<RowId, Fingerprint> {
    const abandoned = this.#abandoned;
    const sent = new Map<RowId, Fingerprint>();
    for (const block of this.#blocks.get(outbox) ?? []) {
      const high = abandoned?.serverUuid === block.serverUuid ? abandoned.high : null;
      if (high === null && isDeleted) continue;
      block.collect(sent, high, !isDeleted);
    }
    return sent;
  }

  #block(outbox: number, hasKeys: boolean): SentBlock {
    let blocks = this.#blocks.get(outbox);
    if (blocks === undefined) this.#blocks.set(outbox, (blocks = []));
    const last = blocks.at(-1);
    const nowMs = this.#clock.nowMs();
    const isOpen =
      last?.hasKeys === hasKeys &&
      last.serverUuid === this.#serverUuid &&
      last.rows < BLOCK_ROWS &&
      nowMs - last.beganMs < BLOCK_MS;
    if (isOpen) return last;
    const block = new SentBlock(this.#serverUuid, nowMs, hasKeys);
    blocks.push(block);
    while (blocks.reduce((rows, each) => rows + each.rows, -blocks[0].rows) >= MOST_ROWS) blocks.shift();
    this.#forgetOld();
    return block;
  }

  #forgetOld(): void {
    const oldestMs = this.#clock.nowMs() - KEPT_MS - BLOCK_MS;
    for (const blocks of this.#blocks.values())
      while (blocks.length > 0 && blocks[0].beganMs < oldestMs) blocks.shift();
  }
}

/** Integers as ranges. */
function shown(ids: readonly RowId[]): string {
  const sorted = [...ids].sort((a, b) => (a < b ? -1 : 1));
  const ranges: { readonly from: RowId; to: RowId }[] = [];
  for (const id of sorted) {
    const last = ranges.at(-1);
    if (last !== undefined && typeof id === 'bigint' && last.to === id - 1n) last.to = id;
    else ranges.push({ from: id, to: id });
  }
  const texts = ranges.slice(0, SHOWN_IDS).map(({ from, to }) => (from === to ? shownId(from) : `${from}..${to}`));
  return texts.join(', ') + (ranges.length > SHOWN_IDS ? ', …' : '');
}
