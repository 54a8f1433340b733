import { expect, test } from 'vitest';
import type { OutboxSettings } from '../../../src/model/settings.ts';
import { WaitingRows } from '../../../src/limits/waiting-rows.ts';
import { PublishedRows } from '../../../src/retention/published-rows.ts';
import { FailedActions } from '../../../src/store/failed-actions.ts';
import { FailedRows } from '../../../src/store/failed-rows.ts';
import { Session } from '../../../src/store/session.ts';
import { silent } from '../store/store-bed.ts';
import { CommandBed, numbers } from './command-bed.ts';

const PUBLISHED = 20_000;

interface Plan {
  readonly type: unknown;
  readonly key: unknown;
  readonly extra: string;
}

/** The session, with every statement on the outbox explained before it is run. */
function explaining(session: Session, plans: Plan[]): Session {
  const explain = async (sql: string, values: readonly unknown[] = []): Promise<void> => {
    if (!/`outbox`/.test(sql)) return;
    const rows = await session.rows('explaining', `EXPLAIN FORMAT=TRADITIONAL ${sql}`, values);
    for (const row of rows) {
      // The row that is inserted, and what a derived table is read by again, are no reads of the outbox.
      if (row['select_type'] === 'INSERT' || !['outbox', null].includes(row['table'] as string | null)) continue;
      plans.push({ type: row['type'], key: row['key'], extra: (row['Extra'] as string | null) ?? '' });
    }
  };
  const explained = {
    serverUuid: session.serverUuid,
    change: async (doing: string, sql: string, values: unknown[] = []) => {
      await explain(sql, values);
      return session.change(doing, sql, values);
    },
    rows: async (doing: string, sql: string, values: unknown[] = []) => {
      await explain(sql, values);
      return session.rows(doing, sql, values);
    },
    raw: async (doing: string, sql: string) => {
      await explain(sql);
      return session.raw(doing, sql);
    },
  };
  return explained as unknown as Session;
}

/** 20,000 published rows, and 50 of each other status that is waited for. */
async function filled(statistics: 'fresh' | 'of a small table'): Promise<CommandBed> {
  const bed = await CommandBed.open([
    {
      table: 'outbox',
      retention: { afterMs: 1_000, archive: 'archive' },
      limits: { pendingRows: 10, pendingAgeMs: 1_000 },
    },
  ]);
  await bed.sql('CREATE TABLE archive LIKE outbox; ALTER TABLE outbox STATS_AUTO_RECALC = 0');
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, status, available_at, published_at)
     SELECT 't', n % 50, ELT(1 + (n % 400 = 0) + 2 * (n % 400 = 1), 'published', 'failed', 'pending'),
       '2026-01-01' + INTERVAL n SECOND, '2026-01-01' + INTERVAL n SECOND FROM ${numbers(PUBLISHED + 100)}`,
  );
  await bed.sql('ANALYZE TABLE outbox');
  if (statistics === 'fresh') return bed;
  // As they are when many rows have just come, or most have just gone.
  await bed.sql(
    `UPDATE mysql.innodb_table_stats SET n_rows = 1, clustered_index_size = 1
     WHERE database_name = ? AND table_name = 'outbox'; FLUSH TABLE outbox`,
    [bed.database],
  );
  return bed;
}

async function plansOf(bed: CommandBed, work: (session: Session, outbox: OutboxSettings) => Promise<unknown>) {
  const settings = bed.settings();
  const session = await Session.open(settings.mysql, silent);
  const plans: Plan[] = [];
  try {
    await work(explaining(session, plans), settings.outboxes[0]);
  } finally {
    session.destroy();
  }
  return plans;
}

const nothing = { topic: null, reason: null, since: null };

test('what is only looked at is found by the index of what waits; nothing is sorted', async () => {
  await using bed = await filled('fresh');
  const pages = await plansOf(bed, async (session, outbox) => {
    const failed = await FailedRows.open(session, outbox);
    const first = await failed.page({ topic: 't', reason: 'x', since: null }, null, 10);
    expect(first.rows).toHaveLength(0);
    const { next } = await failed.page(nothing, null, 10);
    await failed.page(nothing, next, 10);
  });
  expect(pages).toHaveLength(3);
  for (const plan of pages) {
    expect(plan.key).toBe('waiting');
    expect(plan.type).toMatch(/^(ref|range)$/);
    expect(plan.extra).not.toContain('filesort');
  }

  const limits = await plansOf(bed, (session, outbox) => new WaitingRows(outbox, outbox.limits!).read(session));
  expect(limits).toHaveLength(2);
  for (const plan of limits) {
    expect(plan).toMatchObject({ type: 'range', key: 'waiting' });
    expect(plan.extra).toContain('Using index');
    expect(plan.extra).not.toContain('filesort');
  }
});

test.each(['fresh', 'of a small table'] as const)(
  'S18 with statistics that are %s, what locks rows goes by ranges of the primary key',
  async (statistics) => {
    await using bed = await filled(statistics);
    const acts = await plansOf(bed, async (session, outbox) => {
      const failed = await FailedRows.open(session, outbox);
      const ids = (await failed.page(nothing, null, 30)).rows.map(({ id }) => id);
      const actions = new FailedActions(session, bed.settings(), outbox, failed, 'test');
      expect((await actions.act('retry', ids.slice(0, 15))).done).toHaveLength(15);
      expect((await actions.act('discard', ids.slice(15))).done).toHaveLength(15);
      await failed.hidden(ids[0]);
      await failed.laterPublished(ids[0]);
    });
    // The first is the page's.
    for (const plan of acts.slice(1)) {
      expect(plan.key).toBe('PRIMARY');
      expect(plan.type).toMatch(/^(const|range)$/);
      expect(plan.extra).not.toContain('filesort');
    }
    expect(acts.length).toBeGreaterThanOrEqual(7);

    const purges = await plansOf(bed, async (session, outbox) => {
      const rows = new PublishedRows(bed.settings(), outbox);
      const before = '2026-06-01 00:00:00';
      const first = await rows.look(session, null, before, 1_000);
      const second = await rows.look(session, first.last, before, 1_000);
      await session.change('testing', 'START TRANSACTION');
      expect(await rows.remove(session, second.old, before)).toBe(second.old.length);
      await session.change('testing', 'COMMIT');
      expect(second.old.length).toBeGreaterThan(900);
      await rows.idRange(session);
    });
    // The first chunk is the beginning of the index; the ends of a table are known without a read.
    expect(purges[0]).toMatchObject({ type: 'index', key: 'PRIMARY' });
    for (const plan of purges.slice(1, -1)) expect(plan).toMatchObject({ type: 'range', key: 'PRIMARY' });
    expect(purges.at(-1)?.extra).toContain('optimized away');
    expect(purges).toHaveLength(6);
  },
);

test('looking at the limits reads no more rows than the limit, however many there are', async () => {
  await using bed = await filled('fresh');
  const settings = bed.settings();
  const [outbox] = settings.outboxes;
  const session = await Session.open(settings.mysql, silent);
  try {
    const waiting = new WaitingRows(outbox, outbox.limits!);
    await session.change('testing', 'FLUSH STATUS');
    expect(await waiting.read(session)).toMatchObject({ pendingRows: 11 });
    const counters = await session.rows('testing', "SHOW SESSION STATUS LIKE 'Handler_read%'");
    const reads = counters
      .filter((row) => row['Variable_name'] !== 'Handler_read_rnd_next')
      .reduce((sum, row) => sum + Number(row['Value']), 0);
    expect(reads).toBeLessThanOrEqual(15);
  } finally {
    session.destroy();
  }
});
