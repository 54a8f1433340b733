import { expect, test } from 'vitest';
import type { Log } from '../../../src/model/log.ts';
import { Session } from '../../../src/store/session.ts';
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
