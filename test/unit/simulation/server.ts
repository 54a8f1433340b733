import { fault } from '../../../src/model/fault.ts';
import type { ParkedEntry, Scope } from '../../../src/model/parked.ts';
import type { Position } from '../../../src/model/position.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import type { Leader, SavedOffsets } from '../../../src/model/store.ts';
import type { EventLoop } from './event-loop.ts';
import { type Life, unreachable } from './life.ts';
import { type Call, isCommitted, type Plan, type Write } from './plan.ts';
import { ServerLog } from './server-log.ts';
import type { AskedJob } from './simulated-jobs.ts';
import { makeRow, type TableRow } from './table.ts';

/** What a transaction of the relay does; decided behind its compare-and-set, done when it is committed. */
export interface OwnChange<T> {
  readonly rows: readonly TableRow[];
  readonly apply: () => T;
}

/** MySQL: the outbox table, the relay's own tables, the log, and who holds what. */
export class Server {
  readonly loop: EventLoop;
  readonly log: ServerLog;
  /** In commit order. */
  readonly rows: TableRow[] = [];
  readonly #byId = new Map<bigint, TableRow>();
  epoch = 0;
  offsets: SavedOffsets | null = null;
  readonly jobs: AskedJob[] = [];
  /** Pauses that people have asked for. */
  pauses = 0;
  readonly parked = new Map<string, ParkedEntry & { readonly dueAtMs: number | null }>();
  /** Told of each change that the relay has committed. */
  onCommitted: (what: string) => void = () => undefined;
  /** Told of each change that a paused relay wants to make. */
  onPausedWork: (what: string) => void = () => undefined;
  /** The offsets row is the first thing that every transaction of a relay takes. */
  #offsetsRow: Promise<void> = Promise.resolve();
  readonly #visibilityMs: () => number;
  /** When each transaction began, so that ids can be given before those of others. */
  readonly #ids: readonly bigint[][];

  readonly retire: Plan['retire'];

  constructor(loop: EventLoop, { writes, retire }: Plan) {
    this.retire = retire;
    this.loop = loop;
    this.log = new ServerLog(loop);
    this.#visibilityMs = () => loop.delayMs();
    this.#ids = idsOf(writes);
  }

  /** The application commits. */
  commit(write: Write, index: number): void {
    const entry = this.log.append(write.kind, write.visibleAfterMs, () => undefined);
    if (!isCommitted(write)) return;
    const insertedMs = Math.max(0, this.loop.nowMs - write.idsBefore);
    for (const [at, planned] of write.rows.entries()) {
      const row = makeRow(
        planned,
        this.rows.length,
        this.#ids[index]?.[at] ?? BigInt(this.rows.length + 1_000),
        entry,
        insertedMs,
      );
      entry.rows.push(row);
      this.rows.push(row);
      this.#byId.set(row.id, row);
    }
  }

  row(id: RowId): TableRow | undefined {
    return this.#byId.get(BigInt(id));
  }

  /** Somebody deletes a failed row. */
  discard(row: TableRow): void {
    row.status = 'discarded';
    this.#byId.delete(row.id);
  }

  /** It has been sent: so its table says, or it is not there any more. */
  published(row: TableRow): void {
    row.status = 'published';
    if (this.retire === 'delete') this.#byId.delete(row.id);
  }

  isThere(row: TableRow): boolean {
    return this.#byId.has(row.id);
  }

  rowsOf(ids: Iterable<RowId>): TableRow[] {
    return [...ids].flatMap((id) => this.row(id) ?? []);
  }

  isDue(row: TableRow): boolean {
    return row.entry.isVisible && row.status === 'pending' && row.availableAtMs <= this.loop.nowMs;
  }

  /** Locked by somebody, or by the commit that has not ended. */
  isHeld(row: TableRow): boolean {
    return row.holders > 0 || !row.entry.isVisible;
  }

  /**
   * A transaction of a relay. `decide` runs behind the compare-and-set, which `leader` null leaves out; it may throw.
   * Its rows are held from then on, until the change is there for all to see.
   */
  async transact<T>(life: Life, leader: Leader | null, call: Call, decide: () => OwnChange<T>): Promise<T> {
    if (leader?.lost.aborted === true) throw notLeading();
    if (life.isPaused) this.onPausedWork(`${life.name} writes (${call})`);
    const before = this.#offsetsRow;
    const { promise: done, resolve: release } = Promise.withResolvers<undefined>();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#offsetsRow = done.then(() => before);
    this.loop.in(this.loop.delayMs() + this.loop.slowMs(call), () => {
      if (!life.hasSent()) {
        release(undefined);
        return;
      }
      void before.then(() => {
        let change: OwnChange<T>;
        try {
          if (this.loop.unanswered.get(call) === false) throw unreachable();
          if (this.loop.deadlocks.has(call)) throw fault('MYSQL_DEADLOCK', 'retry', 'rolled back');
          if (leader !== null && leader.epoch !== this.epoch) throw notLeading();
          change = decide();
        } catch (error) {
          release(undefined);
          this.loop.in(this.loop.delayMs(), () => life.inside(() => reject(error)));
          return;
        }
        for (const row of change.rows) row.holders++;
        this.log.append('own', this.#visibilityMs(), () => {
          const result = change.apply();
          for (const row of change.rows) row.holders--;
          this.onCommitted(`${life.name}: ${call}`);
          release(undefined);
          const isLost = this.loop.unanswered.get(call) === true;
          this.loop.in(this.loop.delayMs(), () =>
            life.inside(() => (isLost ? reject(unreachable()) : resolve(result))),
          );
        });
      });
    });
    return promise;
  }

  save(checkpoint: SavedOffsets['checkpoint'] | null, high: Position): void {
    const before = this.offsets;
    if (checkpoint !== null) this.offsets = { checkpoint, high, serverUuid: SERVER_UUID };
    else if (before !== null) this.offsets = { ...before, high };
  }

  park(entry: ParkedEntry): void {
    const dueAtMs = entry.dueInMs === null ? null : this.loop.nowMs + entry.dueInMs;
    this.parked.set(nameOf(entry.scope), { ...entry, dueAtMs });
  }

  unpark(scope: Scope): void {
    this.parked.delete(nameOf(scope));
  }
}

export const SERVER_UUID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';

export function nameOf(scope: Scope): string {
  switch (scope.kind) {
    case 'everything':
      return 'everything';
    case 'topic':
      return scope.topic;
    case 'topic-partition':
      return `${scope.topic}/${scope.partition}`;
    case 'pair':
      return `${scope.topic} '${scope.key.toString('latin1')}'`;
  }
}

function notLeading(): Error {
  return fault('LEADERSHIP_LOST', 'renew', 'the offsets row carries another epoch');
}

/** Ids by transaction: given in the order in which the transactions began, not in that of their commits. */
function idsOf(writes: readonly Write[]): bigint[][] {
  const ids: bigint[][] = writes.map(() => []);
  let next = 1n;
  const begun = writes
    .map(({ idsBefore }, index) => ({ index, began: index - idsBefore - (idsBefore > 0 ? 0.5 : 0) }))
    .sort((a, b) => a.began - b.began || a.index - b.index);
  for (const { index } of begun) ids[index] = writes[index].rows.map(() => next++);
  return ids;
}
