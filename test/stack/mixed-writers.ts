import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection, Pool, PoolConnection, RowDataPacket } from 'mysql2/promise';
import type { Ledger, RowKind, WrittenTransaction } from './ledger.ts';

export interface MixedWritersOptions {
  readonly pool: Pool;
  readonly ledger: Ledger;
  readonly random: () => number;
  /** Distinguishes the ids of one run from those of another. */
  readonly run: number;
  readonly topics: readonly string[];
  readonly table?: string;
  readonly writers?: number;
  /** Together. One in 25 belongs to all writers, the others to one each. */
  readonly aggregates?: number;
  /** Larger than any topic takes. */
  readonly poisonBytes: number;
  /** True: a connection that ends is what the test is about. */
  readonly serverFails?: boolean;
}

type Shape = 'plain' | 'statement' | 'xa' | 'long' | 'rolled back';

const SHAPES: readonly (readonly [Shape, number])[] = [
  ['statement', 0.01],
  ['xa', 0.01],
  ['long', 0.015],
  ['rolled back', 0.05],
];
const POISON = 0.02;
const DELAYED = 0.02;
const SHARED_EVERY = 25;
const MOST_ROWS = 5;
const MOST_PAUSE_MS = 60;
const AGAIN_MS = 100;

interface NewRow {
  readonly eventId: Buffer;
  readonly kind: RowKind;
  readonly topic: string;
  readonly aggregate: string;
  readonly payload: string;
  readonly delaySeconds: number;
}

/**
 * An application of several writers that does what real ones do: rows that no topic takes, rows for later, statements
 * in statement format, XA in two phases, transactions that stay open for seconds while others pass them, rollbacks.
 * Each writer changes an aggregate of its own in one transaction at a time, as a lock on it would have it; a few
 * aggregates belong to all, and nothing orders their writers.
 */
export class MixedWriters {
  /** Of INSERT and COMMIT. */
  slowestMs = 0;
  /** What the application has seen of errors; none is right where no server fails. */
  readonly errors: string[] = [];
  readonly transactions: Record<Shape, number> = { plain: 0, statement: 0, xa: 0, long: 0, 'rolled back': 0 };
  readonly #options: Required<MixedWritersOptions>;
  readonly #prepared = new Map<string, { readonly written: WrittenTransaction; readonly commits: boolean }>();
  readonly #busy = new Set<string>();
  readonly #writers: Promise<unknown>;
  #serial = 0;
  #isStopped = false;

  constructor(options: MixedWritersOptions) {
    this.#options = { table: 'outbox', writers: 8, aggregates: 200, serverFails: false, ...options };
    this.#writers = Promise.all(Array.from({ length: this.#options.writers }, (_, writer) => this.#write(writer)));
  }

  /** Ends when the last transaction has; those that were left prepared are decided now. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#writers;
    const [left] = await this.#options.pool.query<RowDataPacket[]>('XA RECOVER');
    for (const { data } of left) {
      const xid = String(data);
      const prepared = this.#prepared.get(xid);
      if (prepared !== undefined) await this.#decide(this.#options.pool, xid, prepared);
    }
  }

  async #write(writer: number): Promise<void> {
    const { random } = this.#options;
    const aside = new Set<Promise<void>>();
    while (!this.#isStopped) {
      const shape = this.#shape();
      const rows = this.#rows(writer, shape);
      if (rows.length > 0) {
        const work = this.#attempt(shape, rows);
        if (shape === 'long' || shape === 'xa') {
          aside.add(work);
          void work.then(() => aside.delete(work));
        } else await work;
      }
      await sleep(random() * MOST_PAUSE_MS);
    }
    await Promise.all(aside);
  }

  async #attempt(shape: Shape, rows: readonly NewRow[]): Promise<void> {
    const own = rows.map(({ aggregate }) => aggregate).filter((name) => !isShared(name));
    for (const name of own) this.#busy.add(name);
    try {
      const connection = await this.#options.pool.getConnection();
      let isSound = false;
      try {
        await this.#transaction(connection, shape, rows);
        this.transactions[shape]++;
        isSound = true;
      } finally {
        // A session that changed its format, or failed, is nobody else's.
        if (isSound && shape !== 'statement') connection.release();
        else connection.destroy();
      }
    } catch (error) {
      this.errors.push(`${shape}: ${error instanceof Error ? error.message : String(error)}`);
      await sleep(AGAIN_MS);
    } finally {
      for (const name of own) this.#busy.delete(name);
    }
  }

  async #transaction(connection: PoolConnection, shape: Shape, rows: readonly NewRow[]): Promise<void> {
    const { ledger, random } = this.#options;
    const written = ledger.begin();
    for (const { eventId, kind } of rows) ledger.row(uuid(eventId), kind, written);
    if (shape === 'xa') {
      await this.#twoPhases(connection, rows, written);
      return;
    }
    if (shape === 'statement') await connection.query("SET SESSION binlog_format = 'STATEMENT'");
    await connection.beginTransaction();
    const half = Math.ceil(rows.length / 2);
    await this.#insert(connection, rows.slice(0, half));
    if (shape === 'long') await sleep(1_000 + random() * 2_000);
    await this.#insert(connection, rows.slice(half));
    if (shape === 'rolled back') {
      await connection.rollback();
      written.fate = 'rolled back';
    } else await ledger.commit(written, () => this.#timed(() => connection.commit()));
  }

  async #twoPhases(connection: Connection, rows: readonly NewRow[], written: WrittenTransaction): Promise<void> {
    const { random, run } = this.#options;
    const xid = `run-${run}-${++this.#serial}`;
    const commits = random() < 0.7;
    await connection.query(`XA START '${xid}'`);
    await this.#insert(connection, rows);
    await connection.query(`XA END '${xid}'`);
    this.#prepared.set(xid, { written, commits });
    await connection.query(`XA PREPARE '${xid}'`);
    await sleep(random() * 1_000);
    await this.#decide(connection, xid, { written, commits });
  }

  async #decide(
    on: Pool | Connection,
    xid: string,
    { written, commits }: { readonly written: WrittenTransaction; readonly commits: boolean },
  ): Promise<void> {
    if (commits) await this.#options.ledger.commit(written, () => on.query(`XA COMMIT '${xid}'`));
    else {
      await on.query(`XA ROLLBACK '${xid}'`);
      written.fate = 'rolled back';
    }
  }

  async #insert(connection: Connection, rows: readonly NewRow[]): Promise<void> {
    if (rows.length === 0) return;
    const values = rows.map(({ eventId, topic, aggregate, payload, delaySeconds }) => [
      ...[eventId, topic, aggregate, payload, delaySeconds],
    ]);
    const places = values.map(() => '(?, ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? SECOND)').join(', ');
    const columns = 'idempotency_key, topic, aggregate_id, payload, available_at';
    const text = `INSERT INTO ${this.#options.table} (${columns}) VALUES ${places}`;
    await this.#timed(() => connection.query(text, values.flat()));
  }

  async #timed(work: () => Promise<unknown>): Promise<void> {
    const beganMs = performance.now();
    await work();
    this.slowestMs = Math.max(this.slowestMs, performance.now() - beganMs);
  }

  #shape(): Shape {
    let at = this.#options.random();
    for (const [shape, part] of SHAPES) {
      if (at < part) return shape;
      at -= part;
    }
    return 'plain';
  }

  /** Of aggregates that no other transaction of the writer is about. */
  #rows(writer: number, shape: Shape): NewRow[] {
    const { random, run, topics, poisonBytes, aggregates, writers } = this.#options;
    const rows: NewRow[] = [];
    for (let wanted = 1 + Math.floor(random() * MOST_ROWS); wanted > 0; wanted--) {
      const n = Math.floor(random() * Math.ceil(aggregates / writers));
      const aggregate = n % SHARED_EVERY === 0 ? `shared-${n}` : `writer-${writer}-${n}`;
      if (this.#busy.has(aggregate)) continue;
      const lot = shape === 'statement' ? 1 : random();
      const kind = lot < POISON ? 'poison' : lot < POISON + DELAYED ? 'delayed' : 'plain';
      const eventId = Buffer.alloc(16);
      eventId.writeUInt32BE(run >>> 0, 0);
      eventId.writeUInt32BE(writer, 8);
      eventId.writeUInt32BE(++this.#serial, 12);
      const filler = 'x'.repeat(kind === 'poison' ? poisonBytes : Math.floor(random() * 400));
      const payload = `{"n": ${this.#serial}, "filler": "${filler}"}`;
      const delaySeconds = kind === 'delayed' ? 1 + random() * 2 : 0;
      // An aggregate is always of the same topic: it is a topic's order that is promised.
      rows.push({ eventId, kind, topic: topics[n % topics.length], aggregate, payload, delaySeconds });
    }
    return rows;
  }
}

function isShared(aggregate: string): boolean {
  return aggregate.startsWith('shared-');
}

function uuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
