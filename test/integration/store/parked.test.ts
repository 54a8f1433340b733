import { describe, expect, test } from 'vitest';
import type { ParkedEntry, Scope } from '../../../src/model/parked.ts';
import type { ParkedChanges } from '../../../src/model/store.ts';
import { checkpointAt, flushOf, StoreBed } from './store-bed.ts';

const EVERYTHING: Scope = { kind: 'everything' };
const pair = (key: string | Buffer, partition = 3): Scope => ({
  kind: 'pair',
  topic: 'orders',
  partition,
  key: Buffer.from(key as string),
});

function entry(scope: Scope, change: Partial<ParkedEntry> = {}): ParkedEntry {
  return { scope, partitions: 12, dueInMs: 60_000, attempts: 1, reason: 'CORRUPT_MESSAGE', row: null, ...change };
}

/** Nothing but changes of what is parked. */
function parking(put: readonly ParkedEntry[], remove: readonly Scope[] = []) {
  return { ...flushOf([], 700), checkpoint: () => null, parked: (): ParkedChanges => ({ put, remove }) };
}

describe('parked scopes', () => {
  test('of every kind are read back as they were written, those of other relays are not', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const other = bed.store({ name: 'other' });
    await other.flush(await bed.lead(other), parking([entry(EVERYTHING)]));
    expect(await store.parked()).toEqual([]);
    const entries = [
      entry(EVERYTHING, { partitions: 0, dueInMs: 0, attempts: 0, reason: 'started' }),
      entry({ kind: 'topic', topic: 'ünknown' }),
      entry({ kind: 'topic-partition', topic: 'orders', partition: 0 }),
      entry(pair('k'), { dueInMs: null, attempts: 9, row: { outbox: 0, id: 2n ** 64n - 1n } }),
      entry(pair(''), { row: { outbox: 0, id: 'c3a900' } }),
      entry(pair(Buffer.alloc(1024, 0xff)), { reason: 'é😀'.repeat(200) }),
    ];
    await store.flush(leader, parking(entries));
    const read = await store.parked();
    expect(read).toHaveLength(entries.length);
    for (const { dueInMs, ...rest } of entries) {
      const found = read.find(({ scope }) => JSON.stringify(scope) === JSON.stringify(rest.scope));
      expect(found).toMatchObject({ ...rest, reason: Array.from(rest.reason).slice(0, 255).join('') });
      if (dueInMs === null || dueInMs === 0) expect(found?.dueInMs).toBe(dueInMs);
      else expect(found?.dueInMs).toBeGreaterThan(dueInMs - 10_000);
      expect(found?.dueInMs ?? 0).toBeLessThanOrEqual(dueInMs ?? 0);
    }
    await store.flush(
      leader,
      parking(
        [],
        entries.slice(1).map(({ scope }) => scope),
      ),
    );
    expect(await store.parked()).toEqual([read.find(({ scope }) => scope.kind === 'everything')]);
    expect(await other.parked()).toHaveLength(1);
  });

  test('S14 keys that a collation takes for one are pairs of their own', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const keys = ['order-a', 'Order-A', 'ORDER-á', 'order-a ', 'order-a\0', '', '\xff'].map((key) => Buffer.from(key));
    keys.push(Buffer.of(0xff), Buffer.of(0xff, 0));
    await store.flush(leader, parking(keys.map((key) => entry(pair(key)))));
    const read = await store.parked();
    expect(new Set(read.map(({ scope }) => JSON.stringify(scope))).size).toBe(keys.length);
    await store.flush(leader, parking([], [pair('Order-A')]));
    const left = await store.parked();
    expect(left).toHaveLength(keys.length - 1);
    expect(left.some(({ scope }) => scope.kind === 'pair' && scope.key.equals(Buffer.from('Order-A')))).toBe(false);
  });

  test('written again it keeps since; the time to wait is counted by the server', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.flush(leader, parking([entry(pair('k'))]));
    await bed.sql("UPDATE cdc_relay_parked SET since = '2026-01-01'");
    await store.flush(leader, parking([entry(pair('k'), { attempts: 2, dueInMs: 500_000 })]));
    const [row] = await bed.sql(
      `SELECT since, attempts, TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), not_before) AS s FROM cdc_relay_parked`,
    );
    expect(row).toMatchObject({ since: '2026-01-01 00:00:00.000000', attempts: 2 });
    expect(Math.abs(Number(row['s']) - 500)).toBeLessThan(30);
    await bed.sql('UPDATE cdc_relay_parked SET not_before = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR');
    expect((await store.parked()).map(({ dueInMs }) => dueInMs)).toEqual([0]);
  });

  test('many at once, and a removed one that is put again stays', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const scopes = Array.from({ length: 1_200 }, (_, n) => pair(`key ${n}`, n));
    await store.flush(leader, parking(scopes.map((scope) => entry(scope))));
    expect(await store.parked()).toHaveLength(1_200);
    await store.flush(leader, parking([entry(scopes[7])], scopes));
    expect((await store.parked()).map(({ scope }) => scope)).toEqual([scopes[7]]);
  });

  test('what no column can hold is refused, and nothing is written', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const wide = parking([entry(pair('k')), entry(pair(Buffer.alloc(1025)))]);
    await expect(store.flush(leader, wide)).rejects.toThrow(RangeError);
    expect(await store.parked()).toEqual([]);
  });

  test('a kind of a newer version is said, not passed over; a row of an outbox no longer configured is nobody’s', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.flush(leader, parking([entry(pair('k'), { row: { outbox: 0, id: 1n } })]));
    await bed.sql("UPDATE cdc_relay_parked SET outbox = 'gone.table'");
    expect((await store.parked())[0].row).toBeNull();
    await bed.sql("UPDATE cdc_relay_parked SET kind = 'galaxy'");
    await expect(store.parked()).rejects.toMatchObject({ fault: { code: 'MYSQL_SCHEMA', disposition: 'halt' } });
  });
});

describe('a flush with parked scopes', () => {
  test('is one transaction with rows and checkpoint; asked for right behind the checkpoint, each time again', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(5);
    const holder = await bed.connect();
    await holder.beginTransaction();
    await holder.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[2]]);
    const asked: string[] = [];
    const turns = { now: 0 };
    const request = flushOf(ids, 700);
    const saved = await store.flush(leader, {
      ...request,
      checkpoint: (held) => {
        asked.push(`checkpoint ${held.length}`);
        queueMicrotask(() => turns.now++);
        turns.now = 0;
        return request.checkpoint(held);
      },
      parked: () => {
        asked.push(`parked, turn ${turns.now}`);
        return { put: [entry(pair('k'))], remove: [] };
      },
    });
    expect(saved).toEqual(checkpointAt(600));
    expect(asked).toEqual(['checkpoint 0', 'parked, turn 0', 'checkpoint 1', 'parked, turn 0']);
    expect(await store.parked()).toHaveLength(1);
    expect(await store.saved()).toMatchObject({ checkpoint: { position: { offset: 600 } }, high: { offset: 700 } });
  });

  test('by another leader’s epoch writes nothing of it', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await bed.sql('UPDATE cdc_relay_offsets SET epoch = epoch + 1');
    const lost = { fault: { code: 'LEADERSHIP_LOST' } };
    await expect(store.flush(leader, parking([entry(EVERYTHING)]))).rejects.toMatchObject(lost);
    const beginning = { checkpoint: checkpointAt(4), high: checkpointAt(4).position, serverUuid: 'u' };
    await expect(store.begin(leader, { ...beginning, parkEverything: 'r' })).rejects.toMatchObject(lost);
    await expect(store.barrier(leader, null)).rejects.toMatchObject(lost);
    expect(await store.parked()).toEqual([]);
  });

  test('nothing parked, nothing to save: no transaction', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const before = await bed.offsets();
    expect(await store.flush(leader, parking([]))).toBeNull();
    expect(await bed.offsets()).toEqual(before);
  });
});

test('begin: position, high and what parks everything in one transaction, whatever was saved before', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  expect(await store.saved()).toBeNull();
  const checkpoint = { ...checkpointAt(157), lastBegin: null, lastGtid: null, lastCommitMicros: null };
  const high = { file: 'binlog.000009', offset: 4 };
  const serverUuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
  await store.begin(leader, { checkpoint, high, serverUuid, parkEverything: null });
  expect(await store.saved()).toEqual({ checkpoint, high, serverUuid });
  expect(await store.parked()).toEqual([]);
  const lower = checkpointAt(4);
  await store.begin(leader, { checkpoint: lower, high: lower.position, serverUuid: 'b', parkEverything: 'purged' });
  expect(await store.saved()).toEqual({ checkpoint: lower, high: lower.position, serverUuid: 'b' });
  const parked = await store.parked();
  expect(parked).toMatchObject([
    { scope: EVERYTHING, partitions: 0, dueInMs: 0, attempts: 0, reason: 'purged', row: null },
  ]);
  expect(Math.abs(Date.now() - parked[0].sinceMs!)).toBeLessThan(60_000);
});

test('high is never before the checkpoint', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  await store.flush(leader, { ...flushOf([], 700), high: { file: 'binlog.000001', offset: 650 } });
  expect((await store.saved())?.high).toEqual({ file: 'binlog.000001', offset: 700 });
  await bed.sql('UPDATE cdc_relay_offsets SET high_file = NULL, high_position = NULL');
  expect((await store.saved())?.high).toEqual({ file: 'binlog.000001', offset: 700 });
});

describe('barrier', () => {
  test('M11 is a transaction of its own in the log, every time', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.serverFacts();
    let end = (await store.logEnd())!;
    for (let n = 0; n < 5; n++) {
      await store.barrier(leader, n === 3 ? { file: 'binlog.000001', offset: 9 } : null);
      const events = await bed.sql(`SHOW BINLOG EVENTS IN '${end.file}' FROM ${end.offset}`);
      const own = events.filter((event) => String(event['Info']).includes(`${bed.database}.cdc_relay_offsets`));
      expect(own.length).toBeGreaterThan(0);
      end = (await store.logEnd())!;
    }
  });

  test('raises high, by the number of the file, and never lowers it', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.flush(leader, flushOf([], 700));
    const high = async () => (await store.saved())?.high;
    const at = (file: string, offset: number) => ({ file, offset });
    for (const [next, expected] of [
      [null, at('binlog.000001', 700)],
      [at('binlog.000001', 699), at('binlog.000001', 700)],
      [at('binlog.000001', 2 ** 40), at('binlog.000001', 2 ** 40)],
      [at('binlog.999999', 4), at('binlog.999999', 4)],
      [at('binlog.1000000', 4), at('binlog.1000000', 4)],
      [at('binlog.999999', 9), at('binlog.1000000', 4)],
    ] as const) {
      await store.barrier(leader, next);
      expect(await high()).toEqual(expected);
    }
    expect((await store.saved())?.checkpoint).toEqual(checkpointAt(700));
  });

  test('does not fall into a flush that waits for a row', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(2);
    const holder = await bed.connect();
    await holder.beginTransaction();
    await holder.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[1]]);
    const flushed = store.flush(leader, flushOf(ids, 700));
    await bed.lockWait();
    await store.barrier(leader, { file: 'binlog.000002', offset: 4 });
    expect(await flushed).toEqual(checkpointAt(600));
    await holder.commit();
  });
});
