import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../model/clock.ts';
import { fault, RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { Checkpoint } from '../model/position.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { Leader, SavedOffsets, ServerFacts } from '../model/store.ts';
import { MysqlStore } from '../store/mysql-store.ts';
import { readHead, readServerFacts } from '../store/server.ts';
import { Session } from '../store/session.ts';
import type { DebeziumOffset } from './debezium-offset.ts';
import { mapColumns, type Mapping } from './mapping.ts';
import { type Plan, planFor } from './plan.ts';
import { readShape, type TableShape } from './table-shape.ts';
import { countThere, makePending, rowsSince } from './unsent-rows.ts';

/** How long open transactions may hold us up, a second at a time. */
const WAIT_MS = 60_000;
/** An index over a large table takes its time; the table is written meanwhile. */
const INDEX_MS = 24 * 3_600_000;

/** A plan need not be exact: the log of a quiet server may end without a word. */
const SILENT_MS = 3_000;

/** What a table is, and what is missing. */
export interface Looked {
  readonly shape: TableShape;
  readonly mapping: Mapping;
  readonly plan: Plan;
  /** The position that the relay has saved; it goes on from there. */
  readonly saved: SavedOffsets | null;
  /** Rows that Debezium has not sent; `gone`: of these, rows that are not in the table any more. */
  readonly unsent: { readonly rows: number; readonly gone: number } | null;
}

export interface Adopted {
  /** Where the relay begins; null: it had a position already. */
  readonly start: Checkpoint | null;
  readonly unsent: { readonly rows: number; readonly gone: number } | null;
}

export interface AdoptionOptions {
  readonly settings: Settings;
  readonly schema: string;
  readonly table: string;
  /** Null: what is in the table counts as published. */
  readonly debezium: DebeziumOffset | null;
  readonly log: Log;
  /** Told of each step before it is taken. */
  readonly onStep: (text: string) => void;
}

/**
 * Makes an existing table an outbox of the relay. Every step that is done already is passed, so it can be run again after
 * whatever has ended it; the position is saved last, and no relay starts by itself before that.
 *
 * The cut between history and news is made while the table is locked for writing: open transactions that have written it
 * have ended then, so that exactly what the log holds before that place counts as published.
 */
export class Adoption {
  readonly #options: AdoptionOptions;
  readonly #session: Session;
  readonly #facts: ServerFacts;

  private constructor(options: AdoptionOptions, session: Session, facts: ServerFacts) {
    this.#options = options;
    this.#session = session;
    this.#facts = facts;
  }

  static async open(options: AdoptionOptions): Promise<Adoption> {
    const session = await Session.open(options.settings.mysql, options.log);
    return new Adoption(options, session, await readServerFacts(session));
  }

  close(): void {
    this.#session.destroy();
  }

  /** Null: there is no such table. Changes nothing. */
  async look(): Promise<Looked | null> {
    const { settings, schema, table, debezium } = this.#options;
    const shape = await readShape(this.#session, schema, table);
    if (shape === null) return null;
    const configured = settings.outboxes.find((each) => each.schema === schema && each.table === table) ?? null;
    const mapping = mapColumns(shape, schema, table, configured);
    const store = new MysqlStore(settings, systemClock, this.#options.log);
    try {
      const saved = await store.saved();
      const canLook = mapping.problems.length === 0 && saved === null && debezium !== null;
      const unsent = canLook ? await this.#unsent(mapping.outbox, await this.#head(), SILENT_MS) : null;
      return {
        ...{ shape, mapping, saved, plan: planFor(shape, mapping.outbox) },
        unsent: unsent === null ? null : { rows: unsent.length, gone: await this.#gone(mapping.outbox, unsent) },
      };
    } finally {
      await store.close();
    }
  }

  /** Throws a `RelayError`: what was done before stays, and running it again goes on. */
  async carryOut({ mapping: { outbox }, plan, saved }: Looked): Promise<Adopted> {
    const { settings, log } = this.#options;
    if (saved !== null) {
      await this.#columnsAndIndex(plan, outbox);
      await this.#cut(plan, outbox);
      return { start: null, unsent: null };
    }
    const store = new MysqlStore(withOutbox(settings, outbox), systemClock, log);
    let leader: Leader | null = null;
    try {
      // First: without the relay's tables, or with a relay at work, nothing is begun.
      leader = await leadAlone(store);
      await this.#columnsAndIndex(plan, outbox);
      const start = await this.#cut(plan, outbox);
      const unsent = await this.#sendWhatIsUnsent(store, leader, outbox, start);
      const { position } = start;
      // Pending rows of all outboxes go before what follows in the log, as at every first start.
      const parkEverything = settings.outboxes.every(({ retire }) => retire === 'keep') ? null : 'START';
      const from = outbox.retire === 'keep' && this.#options.debezium !== null ? this.#debeziumStart(start) : start;
      this.#options.onStep(
        `saving ${from.position.file}:${from.position.offset} as the start of ${settings.relay.name}`,
      );
      await store.begin(leader, {
        ...{ checkpoint: from, high: from === start ? position : from.position, serverUuid: this.#facts.serverUuid },
        parkEverything: outbox.retire === 'keep' && from !== start ? null : parkEverything,
      });
      return { start: from, unsent };
    } finally {
      await leader?.release();
      await store.close();
    }
  }

  async #columnsAndIndex({ addColumns, addIndex }: Plan, { schema, table }: OutboxSettings): Promise<void> {
    const name = quoteTable(schema, table);
    if (addColumns !== null) await this.#patiently(`adding columns to ${name}`, addColumns);
    if (addIndex !== null) await this.#patiently(`adding an index to ${name}`, addIndex, INDEX_MS);
  }

  /** Where news begins. */
  async #cut({ cut }: Plan, { schema, table }: OutboxSettings): Promise<Checkpoint> {
    if (cut === null) return this.#head();
    const name = quoteTable(schema, table);
    await this.#patiently(`locking ${name} for the cut`, `LOCK TABLES ${name} WRITE`);
    try {
      await this.#session.change(`making new rows of ${name} pending`, cut);
      return await this.#head();
    } finally {
      if (this.#session.isUsable) await this.#session.change(`unlocking ${name}`, 'UNLOCK TABLES');
    }
  }

  async #sendWhatIsUnsent(
    store: MysqlStore,
    leader: Leader,
    outbox: OutboxSettings,
    cut: Checkpoint,
  ): Promise<Adopted['unsent']> {
    if (this.#options.debezium === null || outbox.retire === 'keep') return null;
    // So that the log goes on behind the cut, however quiet the server is.
    await store.barrier(leader, null);
    const ids = await this.#unsent(outbox, cut, null);
    this.#options.onStep(`making ${ids.length} rows pending that Debezium has not sent`);
    return { rows: ids.length, gone: ids.length - (await makePending(this.#session, outbox, ids)) };
  }

  #unsent(outbox: OutboxSettings, to: Checkpoint, silentMs: number | null) {
    const { settings, debezium, log } = this.#options;
    const from = this.#debeziumStart(to);
    return rowsSince(settings, outbox, from, to.position, debezium!.gtids, this.#session, log, silentMs);
  }

  async #gone(outbox: OutboxSettings, unsent: readonly (bigint | string)[]): Promise<number> {
    return outbox.retire === 'keep' ? 0 : unsent.length - (await countThere(this.#session, outbox, unsent));
  }

  #debeziumStart(like: Checkpoint): Checkpoint {
    const { position, gtids } = this.#options.debezium!;
    return { ...like, position, gtidSet: this.#facts.gtidMode ? gtids : null, lastGtid: null, lastCommitMicros: null };
  }

  #head(): Promise<Checkpoint> {
    return readHead(this.#session, this.#facts);
  }

  /** What has to wait for a lock gives up after a second: the application's statements queue behind it. */
  async #patiently(doing: string, sql: string, timeoutMs?: number): Promise<void> {
    this.#options.onStep(doing);
    const until = performance.now() + WAIT_MS;
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#session.rows(doing, sql, [], timeoutMs);
        return;
      } catch (error) {
        const isWait = error instanceof RelayError && error.fault.code === 'MYSQL_LOCK_WAIT';
        if (!isWait || performance.now() > until) throw error;
        if (attempt === 1) this.#options.log.warn('adoption-waits', { doing, atMostMs: WAIT_MS });
        await sleep(Math.min(100 * attempt, 1_000));
      }
    }
  }
}

async function leadAlone(store: MysqlStore): Promise<Leader> {
  const busy = new AbortController();
  try {
    await store.serverFacts();
    return await store.lead(busy.signal, () => busy.abort());
  } catch (error) {
    if (!busy.signal.aborted) throw error;
    throw fault('LEADERSHIP_HELD', 'halt', 'a relay of this name is running: stop it first');
  }
}

function withOutbox(settings: Settings, outbox: OutboxSettings): Settings {
  const others = settings.outboxes.filter(({ schema, table }) => schema !== outbox.schema || table !== outbox.table);
  return { ...settings, outboxes: [outbox, ...others] };
}
