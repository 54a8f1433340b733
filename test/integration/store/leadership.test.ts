import { expect, test } from 'vitest';
import { lockName } from '../../../src/store/leadership.ts';
import { Proxy } from '../../stack/proxy.ts';
import { eventually, until } from '../../stack/until.ts';
import { checkpointAt, flushOf, StoreBed } from './store-bed.ts';

const TAKE_OVER_MS = 3_000;
/** Where nothing may be waited for by time: the time that would be waited for, and one far below it. */
const LONG_MS = 9_000;
const AT_ONCE_MS = 5_500;

test('of two relays of one name one leads; the other takes over at once when it is given back', async () => {
  await using bed = await StoreBed.open();
  const leader = await bed.lead(bed.store({ takeOverMs: LONG_MS }));
  const second = waiting(bed);
  await second.standby;
  expect(leader.maySend()).toBe(true);
  const startedMs = performance.now();
  await leader.release();
  const successor = await second.leader;
  expect(performance.now() - startedMs).toBeLessThan(AT_ONCE_MS);
  expect(successor.epoch).toBe(leader.epoch + 1);
  expect(leader.maySend()).toBe(false);
  expect(successor.maySend()).toBe(true);
  await successor.release();
});

test('the connection of the leader is killed: taken over at once, and the one before hears of it', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store({ takeOverMs: LONG_MS });
  const leader = await bed.lead(store);
  const ids = await bed.insert(1);
  const second = waiting(bed);
  await second.standby;
  const startedMs = performance.now();
  await bed.sql(`KILL CONNECTION ${await holder(bed)}`);
  const successor = await second.leader;
  expect(performance.now() - startedMs).toBeLessThan(AT_ONCE_MS);
  // Until it knows, it cannot write.
  await expect(store.flush(leader, flushOf(ids, 700))).rejects.toMatchObject({ fault: { code: 'LEADERSHIP_LOST' } });
  expect(await bed.ids('pending')).toEqual(ids);
  await until(() => leader.lost.aborted, { withinMs: 20_000, what: 'told to the leader before' });
  expect(leader.maySend()).toBe(false);
  expect(successor.lost.aborted).toBe(false);
  await successor.release();
});

test('S22 the leader is frozen: it may not send before another may, and is taken over after its time', async () => {
  await using bed = await StoreBed.open();
  await using proxy = await Proxy.open(bed.mysql);
  const leader = await bed.lead(
    bed.store({ takeOverMs: TAKE_OVER_MS, place: { host: '127.0.0.1', port: proxy.port } }),
  );
  const second = waiting(bed);
  await second.standby;
  const startedMs = performance.now();
  proxy.freeze();
  let forbiddenMs = Infinity;
  void until(() => !leader.maySend(), { withinMs: 20_000, what: 'forbidden to send' }).then(() => {
    forbiddenMs = performance.now();
  });
  const successor = await second.leader;
  const takenMs = performance.now();
  expect(leader.maySend()).toBe(false);
  // Half the time after the last answer, which is at most a third of it (and the way there and back) old.
  expect(forbiddenMs - startedMs).toBeGreaterThan(TAKE_OVER_MS / 2 - TAKE_OVER_MS / 3 - 100);
  expect(takenMs - startedMs).toBeGreaterThan(TAKE_OVER_MS - TAKE_OVER_MS / 3 - 100);
  expect(takenMs - startedMs).toBeLessThan(TAKE_OVER_MS + 15_000);
  await until(() => leader.lost.aborted, { withinMs: 20_000, what: 'told to the leader before' });
  await successor.release();
});

test('a leader whose lock is lost writes nothing more, though nobody has taken it', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store({ takeOverMs: TAKE_OVER_MS });
  const leader = await bed.lead(store);
  const ids = await bed.insert(1);
  await bed.sql(`KILL CONNECTION ${await holder(bed)}`);
  await until(() => leader.lost.aborted, { withinMs: 20_000, what: 'told to the leader' });
  const lost = { fault: { code: 'LEADERSHIP_LOST', disposition: 'renew' } };
  await expect(store.flush(leader, flushOf(ids, 700))).rejects.toMatchObject(lost);
  const next = await bed.lead(store);
  await expect(store.flush(leader, flushOf(ids, 700))).rejects.toMatchObject(lost);
  expect(await bed.ids('pending')).toEqual(ids);
  expect(await store.flush(next, flushOf(ids, 800))).toEqual(checkpointAt(800));
});

test('a stop ends the wait for the lock', async () => {
  await using bed = await StoreBed.open();
  await bed.lead(bed.store());
  const second = waiting(bed);
  await second.standby;
  const startedMs = performance.now();
  second.stop();
  await expect(second.leader).rejects.toMatchObject({ fault: { code: 'STOPPED' } });
  expect(performance.now() - startedMs).toBeLessThan(15_000);
});

test('relays of other names, and of the same name in another schema, do not wait for each other', async () => {
  await using bed = await StoreBed.open();
  await using neighbour = await StoreBed.open();
  const leaders = [
    await bed.lead(bed.store()),
    await bed.lead(bed.store({ name: 'other' })),
    await neighbour.lead(neighbour.store()),
  ];
  expect(leaders.map(({ epoch }) => epoch)).toEqual([1, 1, 1]);
  expect(leaders.map((leader) => leader.maySend())).toEqual([true, true, true]);
});

test('the wait for the lock outlasts a short query time-out', async () => {
  await using bed = await StoreBed.open();
  const leader = await bed.lead(bed.store());
  const second = waiting(bed, { queryTimeoutMs: 2_000 });
  await second.standby;
  // A whole wait on the server, which is as long as the time-out of a query, and the next one.
  const asking = await until(() => waits(bed), { withinMs: 20_000, what: 'a wait for the lock' });
  await until(async () => (await waits(bed)) !== asking, { withinMs: 20_000, what: 'the next wait for the lock' });
  await leader.release();
  await (await second.leader).release();
});

/** A second relay that asks for the lock. */
function waiting(bed: StoreBed, options: { queryTimeoutMs?: number } = {}) {
  const stop = new AbortController();
  const standby = Promise.withResolvers<undefined>();
  const store = bed.store({ takeOverMs: TAKE_OVER_MS, ...options });
  const leader = store.lead(stop.signal, () => standby.resolve(undefined));
  leader.catch(standby.reject);
  return { leader, standby: standby.promise, stop: () => stop.abort() };
}

async function holder(bed: StoreBed): Promise<number> {
  const [row] = await bed.sql('SELECT IS_USED_LOCK(?) AS id', [lockName(bed.database, 'store-test')]);
  return Number(row['id']);
}

/** The statement that waits for the lock now, by the count of statements of its connection. */
async function waits(bed: StoreBed): Promise<string | undefined> {
  const rows = await bed.sql(
    `SELECT CONCAT(s.thread_id, '-', s.event_id) AS id
     FROM performance_schema.events_statements_current AS s JOIN performance_schema.threads USING (thread_id)
     WHERE processlist_state = 'User lock' AND s.sql_text LIKE ?`,
    [`%${lockName(bed.database, 'store-test')}%`],
  );
  return rows.at(0)?.['id'] as string | undefined;
}

test('S22 the leader is frozen in the midst of a flush: its locks end with its time, and it is taken over', async () => {
  await using bed = await StoreBed.open();
  await using proxy = await Proxy.open(bed.mysql);
  const place = { host: '127.0.0.1', port: proxy.port };
  const store = bed.store({ takeOverMs: TAKE_OVER_MS, place });
  const leader = await bed.lead(store);
  const ids = await bed.insert(2);
  const application = await bed.connect();
  await application.beginTransaction();
  await application.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[1]]);
  const flushed = store.flush(leader, flushOf(ids, 700)).catch(() => undefined);
  await bed.lockWait();
  // From here on nothing arrives: the transaction stands open, with the offsets row locked.
  proxy.freeze();
  const startedMs = performance.now();
  const next = bed.store({ takeOverMs: TAKE_OVER_MS });
  const successor = await eventually(() => bed.lead(next), { withinMs: 60_000, what: 'taken over' });
  // A second for the row, the take-over time, and one try more; without an end of its own it would be for ever.
  expect(performance.now() - startedMs).toBeLessThan(TAKE_OVER_MS + 20_000);
  await application.commit();
  expect(await next.flush(successor, flushOf(ids, 800))).toEqual(checkpointAt(800));
  proxy.cut();
  await flushed;
  expect((await bed.offsets())['position']).toBe('800');
});
