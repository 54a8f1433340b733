import { expect, test } from 'vitest';
import { OutboxRetirement } from '../../../src/store/outbox-retirement.ts';
import { RowLocks } from '../../../src/store/row-locks.ts';
import { Session } from '../../../src/store/session.ts';
import { flushOf, silent, StoreBed } from './store-bed.ts';

interface Plan {
  readonly statement: string;
  readonly type: unknown;
  readonly key: unknown;
  readonly rows: number;
}

const modes = ['mark', 'delete'] as const;
const sizes = [
  { table: 450, named: 200 },
  { table: 5_000, named: 4_000 },
  { table: 20_000, named: 4_000 },
  // More than the optimizer has memory for in one statement.
  { table: 42_000, named: 40_000 },
];

test.for(modes.flatMap((retire) => sizes.map((size) => ({ retire, ...size }))))(
  'S18 $retire: $named ids of a table of $table rows go by ranges of the primary key',
  async ({ retire, table, named }) => {
    await using bed = await StoreBed.open();
    const settings = bed.settings({ retire });
    const ids = await bed.insertMany(table);
    const session = await Session.open(settings.mysql, silent);
    try {
      const plans: Plan[] = [];
      const retirement = new OutboxRetirement(settings.outboxes[0]);
      const locks = new RowLocks(settings.outboxes[0]);
      // One is not there: what comes after "fewer than named" is looked at too.
      const list = BigUint64Array.from([...ids.slice(0, named - 1), ids[0] + 2n ** 40n]);
      await session.change('testing', 'START TRANSACTION');
      await locks.take(explaining(session, plans), list);
      await retirement.retire(explaining(session, plans), list);
      await session.change('testing', 'ROLLBACK');
      expect(plans.length).toBeGreaterThanOrEqual(3);
      for (const plan of plans) {
        expect(plan).toMatchObject({ type: 'range', key: 'PRIMARY' });
        expect(plan.rows).toBeLessThanOrEqual(named);
      }
    } finally {
      session.destroy();
    }
  },
);

test.for(modes)('S18 %s: rows that are not in the list never make a flush wait', async (retire) => {
  await using bed = await StoreBed.open();
  const store = bed.store({ retire });
  const leader = await bed.lead(store);
  const ids = await bed.insertMany(5_000);
  const application = await bed.connect();
  await application.beginTransaction();
  await bed.insert(5, application);
  // In the midst of the ids that are named.
  await application.query('UPDATE outbox SET attempts = 1 WHERE id = ?', [ids[101]]);
  const named = ids.filter((_, i) => i !== 101).slice(0, 4_000);
  // One that is gone leads to the locking read.
  await bed.sql('DELETE FROM outbox WHERE id = ?', [named[0]]);
  const request = flushOf(named, 700);
  await store.flush(leader, request);
  const around = flushOf([], 800, ids.slice(4_500));
  await store.flush(leader, around);
  expect([...request.asked, ...around.asked]).toEqual([[], []]);
  expect(await bed.ids('pending')).toEqual([ids[101], ...ids.slice(4_001, 4_500)]);
});

/** The session, with every statement explained before it is run. A read of one row by its id has no plan to choose. */
function explaining(session: Session, plans: Plan[]): Session {
  const explain = async (sql: string): Promise<void> => {
    if (sql.endsWith('NOWAIT')) return;
    const [plan] = await session.rows('explaining', `EXPLAIN FORMAT=TRADITIONAL ${sql}`);
    const statement = sql.replace(/IN \(.*\)/, 'IN (...)');
    plans.push({ statement, type: plan['type'], key: plan['key'], rows: Number(plan['rows']) });
  };
  const explained = {
    change: async (doing: string, sql: string) => {
      await explain(sql);
      return session.change(doing, sql);
    },
    rows: async (doing: string, sql: string) => {
      await explain(sql);
      return session.rows(doing, sql);
    },
  };
  return explained as unknown as Session;
}
