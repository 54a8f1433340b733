import { expect, test } from 'vitest';
import type { Leader } from '../../../src/model/store.ts';
import { OffsetsRow } from '../../../src/store/offsets-row.ts';
import { Session } from '../../../src/store/session.ts';
import { type SweptOutbox, sweptOutbox } from '../../../src/store/swept-outbox.ts';
import { full } from '../../stack/full.ts';
import { silent, StoreBed } from './store-bed.ts';

const PUBLISHED = full(200_000, 2_000_000);
const PENDING = 50_000;
const BATCH = 1_000;
const LEADER = { epoch: 7 } as Leader;

const BY_INDEX = { key: 'waiting' };
const BY_RANGE = { type: 'range', key: 'waiting' };
const BY_ID = { type: 'range', key: 'PRIMARY' };

interface Plan {
  readonly statement: string;
  readonly type: unknown;
  readonly key: unknown;
  readonly extra: string;
}

test(
  `L1 beside ${PUBLISHED} published rows, looking for waiting ones reads those and no other`,
  { timeout: full(240_000, 600_000) },
  async () => {
    await using bed = await StoreBed.open();
    await using looks = await Looks.open(bed);
    const { select, claims } = looks.swept;
    const { session } = looks;
    await published(bed, PUBLISHED);

    await select.dueRows(session, null, BATCH); // asks for the table's columns and indexes
    const nothing = await looks.reads(async () => {
      expect((await select.dueRows(session, null, BATCH)).rows).toEqual([]);
      expect((await select.dueIds(session, null, BATCH, null)).ids).toEqual([]);
      expect(await select.nextDueMs(session)).toBeNull();
      expect(await claims.releaseOthers(session, LEADER, null)).toEqual({ released: 0, held: [] });
    });
    expect(nothing.rows).toBeLessThanOrEqual(8);
    expect(nothing.plans).toMatchObject([BY_RANGE, BY_RANGE, BY_RANGE, BY_INDEX]);

    const ids = await bed.insertMany(PENDING);
    await bed.sql(
      'INSERT INTO outbox (topic, aggregate_id, available_at) VALUES (?, ?, UTC_TIMESTAMP(6) + INTERVAL 1 DAY)',
      [...['topic', 'later']],
    );
    let after = await select.dueRows(session, null, BATCH);
    const pages = await looks.reads(async () => {
      after = await select.dueRows(session, after.next, BATCH);
      expect(after.rows.map(({ id }) => id)).toEqual(ids.slice(BATCH, 2 * BATCH));
      expect(await select.nextDueMs(session)).toBeGreaterThan(0);
    });
    expect(pages.rows).toBeLessThanOrEqual(BATCH + 2);
    expect(pages.plans).toMatchObject([BY_RANGE, BY_RANGE]);
    expect(pages.plans.map(({ extra }) => extra).join()).not.toMatch(/filesort|temporary/i);

    // By id they are to be sorted: what is read is what waits, and of it the index alone.
    const sorted = await looks.reads(async () => {
      const { ids: page, next } = await select.dueIds(session, null, BATCH, null);
      expect(page).toEqual(ids.slice(0, BATCH));
      expect((await select.dueIds(session, next, BATCH, null)).ids).toEqual(ids.slice(BATCH, 2 * BATCH));
    });
    expect(sorted.rows).toBeLessThanOrEqual(2 * PENDING + 4);
    expect(sorted.plans).toMatchObject([BY_RANGE, BY_RANGE]);
    for (const { extra } of sorted.plans) expect(extra).toContain('Using index');
    for (const { extra } of sorted.plans) expect(extra).not.toContain('Using index condition');

    const named = [...ids.filter((_, n) => n % 50 === 0)];
    const candidates = await looks.reads(() => select.candidates(session, named));
    expect(candidates.rows).toBeLessThanOrEqual(2 * named.length + 2);
    expect(candidates.plans).toMatchObject([BY_ID]);
  },
);

test('every statement that changes waiting rows goes by ranges of the primary key', async () => {
  await using bed = await StoreBed.open();
  const { epoch } = await bed.lead(bed.store());
  await published(bed, 2_000);
  const ids = await bed.insertMany(3_000);
  for (const [n, retire] of (['mark', 'delete'] as const).entries()) {
    const leader = { epoch: epoch + n } as Leader;
    const next = { epoch: epoch + n + 1 } as Leader;
    await using looks = await Looks.open(bed, retire);
    const { swept, session } = looks;
    const own = retire === 'mark' ? ids.slice(0, 1_500) : ids.slice(1_500);
    const { plans } = await looks.reads(async () => {
      const { claimed } = await swept.claims.claim(session, leader, [...own, own[0] + 2n ** 40n]);
      expect(claimed).toEqual(own);
      const failures = own.slice(500, 900).map((id) => ({ outbox: 0, id, as: 'failed' as const, error: 'e' }));
      const outcome = { published: own.slice(0, 500), failures, back: own.slice(900, 1_000) };
      expect((await swept.claims.writeBack(session, leader, outcome)).published).toEqual([]);
      await bed.sql('UPDATE cdc_relay_offsets SET epoch = ?', [next.epoch]);
      const some = own.slice(1_000, 1_100);
      expect(await swept.claims.releaseOthers(session, next, some)).toEqual({ released: 100, held: [] });
      expect(await swept.claims.releaseOthers(session, next, null)).toEqual({ released: 400, held: [] });
    });
    const changing = plans.filter(({ statement }) => /FOR UPDATE|UPDATE `t_\w+`\.`outbox`|DELETE/.test(statement));
    expect(changing.length).toBeGreaterThanOrEqual(6);
    for (const plan of changing) expect(plan).toMatchObject(BY_ID);
    const finding = plans.filter(({ statement }) => statement.includes('(`waiting`)'));
    expect(finding.length).toBeGreaterThan(0);
    for (const plan of finding) expect(plan).toMatchObject(BY_INDEX);
  }
});

async function published(bed: StoreBed, count: number): Promise<void> {
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, payload, status, published_at)
     WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
     SELECT /*+ SET_VAR(cte_max_recursion_depth = 3M) */ 'topic', n % 50, '{}', 'published', UTC_TIMESTAMP(6) FROM n`,
    [count],
  );
}

/** Statements on waiting rows, with the plan of each, and how many rows the storage engine gave for them. */
class Looks implements AsyncDisposable {
  readonly swept: SweptOutbox;
  readonly session: Session;
  readonly #real: Session;
  /** What asking for the count adds to it. */
  #asking = 0;
  #plans: Plan[] = [];
  #rows = 0;

  private constructor(swept: SweptOutbox, real: Session) {
    this.swept = swept;
    this.#real = real;
    const explained = {
      raw: (doing: string, sql: string) => this.#watch(sql, () => real.raw(doing, sql)),
      rows: (doing: string, sql: string, values?: unknown[]) => this.#watch(sql, () => real.rows(doing, sql, values)),
      change: (doing: string, sql: string, values?: unknown[]) =>
        this.#watch(sql, () => real.change(doing, sql, values)),
    };
    this.session = explained as unknown as Session;
  }

  static async open(bed: StoreBed, retire: 'mark' | 'delete' = 'mark'): Promise<Looks> {
    const settings = bed.settings({ retire });
    const swept = sweptOutbox(0, settings.outboxes[0], new OffsetsRow(settings));
    const looks = new Looks(swept!, await Session.open(settings.mysql, silent));
    await looks.#count();
    looks.#asking = -(await looks.#count()) + (await looks.#count());
    return looks;
  }

  async reads(work: () => Promise<unknown>): Promise<{ rows: number; plans: Plan[] }> {
    this.#plans = [];
    this.#rows = 0;
    await work();
    return { rows: this.#rows, plans: this.#plans };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#real.destroy();
    await Promise.resolve();
  }

  async #watch<T>(sql: string, run: () => Promise<T>): Promise<T> {
    if (!sql.includes('`outbox`') || sql.endsWith('NOWAIT') || sql.startsWith('SHOW')) return run();
    const [plan] = await this.#real.rows('explaining', `EXPLAIN FORMAT=TRADITIONAL ${sql}`);
    const { type, key, Extra } = plan;
    this.#plans.push({ statement: sql.replaceAll(/IN \([^)]{200,}\)/g, 'IN (…)'), type, key, extra: String(Extra) });
    const before = await this.#count();
    const result = await run();
    this.#rows += (await this.#count()) - before - this.#asking;
    return result;
  }

  async #count(): Promise<number> {
    const rows = await this.#real.rows('counting', "SHOW SESSION STATUS LIKE 'Handler_read%'");
    return rows.reduce((sum, row) => sum + Number(row['Value']), 0);
  }
}
