import { expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import { Session } from '../../../src/store/session.ts';
import { SessionSlot } from '../../../src/store/session-slot.ts';
import { until } from '../../stack/until.ts';
import { flushOf, silent, StoreBed } from './store-bed.ts';

test('every connection reads committed rows, in UTC, and gives locks up soon', async () => {
  await using bed = await StoreBed.open();
  const session = await Session.open(bed.settings().mysql, silent);
  try {
    const [row] = await session.rows(
      'testing',
      `SELECT @@transaction_isolation AS isolation, @@time_zone AS zone, @@innodb_lock_wait_timeout AS row_lock_s,
         @@lock_wait_timeout AS table_lock_s, @@binlog_row_image AS image`,
    );
    expect({ ...row }).toEqual({
      isolation: 'READ-COMMITTED',
      zone: '+00:00',
      row_lock_s: '1',
      table_lock_s: '1',
      image: 'MINIMAL',
    });
  } finally {
    session.destroy();
  }
});

test('S32 without SESSION_VARIABLES_ADMIN the row image stays as it is, and all goes on', async () => {
  await using bed = await StoreBed.open();
  const user = `u_${bed.database.slice(2)}`;
  await bed.sql(`CREATE USER ${user} IDENTIFIED BY 'secret'`);
  try {
    await bed.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${bed.database}.* TO ${user}`);
    const told: string[] = [];
    const log: Log = { ...silent, debug: (event) => told.push(event) };
    const place = { user, password: 'secret' };
    for (const retire of ['mark', 'delete'] as const) {
      const store = bed.store({ retire, place, log });
      const leader = await bed.lead(store);
      await store.flush(leader, flushOf(await bed.insert(3), 700));
      expect(await bed.ids('pending')).toEqual([]);
      await leader.release();
    }
    expect(told).toContain('row-image-stays-full');
    const session = await Session.open(bed.settings({ place }).mysql, silent);
    const [row] = await session.rows('testing', 'SELECT @@binlog_row_image AS image');
    session.destroy();
    expect(row['image']).toBe('FULL');
  } finally {
    await bed.sql(`DROP USER ${user}`);
  }
});

test('of two who use one session at once, neither falls into the other’s transaction', async () => {
  await using bed = await StoreBed.open();
  const { mysql } = bed.settings();
  const slot = new SessionSlot({ mysql, clock: systemClock, log: silent, takeOverMs: 10_000 });
  const insert = `INSERT INTO ${bed.database}.outbox (topic, aggregate_id) VALUES ('t', 'a')`;
  const order: string[] = [];
  const rolledBack = slot.use(async (session) => {
    await session.change('testing', 'START TRANSACTION');
    await session.change('testing', insert);
    await session.rows('testing', 'SELECT SLEEP(0.05)');
    await session.change('testing', 'ROLLBACK');
    order.push('rolled back');
  });
  const failed = slot.use(() => Promise.reject(new Error('no')));
  const written = slot.use(async (session) => {
    await session.change('testing', insert);
    order.push('written');
  });
  await expect(failed).rejects.toThrow('no');
  await Promise.all([rolledBack, written]);
  expect(order).toEqual(['rolled back', 'written']);
  expect(await bed.ids('pending')).toHaveLength(1);
  // What was under way ends with the session, and the next has a new one.
  const ended = slot.use((session) => session.rows('testing', 'SELECT SLEEP(30)')).catch((caught: unknown) => caught);
  await until(async () => (await sleepers(bed)) > 0, { withinMs: 20_000, what: 'the long statement under way' });
  slot.destroy();
  expect(await ended).toMatchObject({ fault: { code: 'MYSQL_UNREACHABLE' } });
  expect(await slot.use((session) => session.change('testing', insert))).toEqual({ matched: 1 });
  slot.close();
});

async function sleepers(bed: StoreBed): Promise<number> {
  const [row] = await bed.sql(
    "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(30)'",
  );
  return Number(row['n']);
}
