import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/model/clock.ts';
import { PendingLimits } from '../../../src/limits/pending-limits.ts';
import { MysqlStore } from '../../../src/store/mysql-store.ts';
import { until } from '../../stack/until.ts';
import { CommandBed } from '../commands/command-bed.ts';
import { checkpointAt, silent } from '../store/store-bed.ts';

const REFUSE = { table: 'outbox', limits: { pendingRows: 10, pendingAgeMs: 60_000, policy: 'refuse' } };

/** Looks as fast as it can; everything else by the real clock. */
const hurried: Clock = {
  nowMs: () => systemClock.nowMs(),
  after: (delayMs, call) => systemClock.after(delayMs === 1_000 ? 20 : delayMs, call),
};

interface AtWork {
  readonly limits: PendingLimits;
  readonly logged: readonly string[];
  readonly ended: Promise<unknown>;
  readonly flush: () => Promise<unknown>;
}

/** A leader's limits at work while `work` runs. */
async function atWork(bed: CommandBed, work: (limits: AtWork) => Promise<void>): Promise<unknown> {
  const settings = bed.settings();
  const store = new MysqlStore(settings, systemClock, silent);
  const { serverUuid } = await store.serverFacts();
  const leader = await store.lead(AbortSignal.timeout(60_000), () => undefined);
  const logged: string[] = [];
  const note = (event: string): void => void logged.push(event);
  const limits = new PendingLimits({
    ...{ settings, leader, serverUuid, clock: hurried },
    log: { ...silent, info: note, warn: note },
  });
  const stop = new AbortController();
  const ended = limits.run(stop.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  let offset = 100;
  const flush = (): Promise<unknown> => {
    const checkpoint = checkpointAt((offset += 100));
    const high = checkpoint.position;
    return store.flush(leader, { retire: [], suspects: [], checkpoint: () => checkpoint, high, parked: () => null });
  };
  try {
    await work({ limits, logged, ended, flush });
  } finally {
    stop.abort();
    await ended;
    await leader.release();
    await store.close();
  }
  return ended;
}

async function pending(bed: CommandBed, rows: number, due = 'UTC_TIMESTAMP(6)'): Promise<void> {
  const values = Array.from({ length: rows }, () => `('t', 'a', ${due})`).join(', ');
  await bed.sql(`INSERT INTO outbox (topic, aggregate_id, available_at) VALUES ${values}`);
}

/** The statements of the docs, for this outbox. */
function documented(bed: CommandBed): string[] {
  const docs = readFileSync(new URL('../../../docs/limits.md', import.meta.url), 'utf8');
  const blocks = [...docs.matchAll(/^```sql\n([^]*?)^```$/gm)].map(([, sql]) => sql);
  return blocks.map((sql) => sql.replaceAll('app.outbox', `${bed.database}.outbox`));
}

/** As the docs say that an application asks. */
async function mayInsert(bed: CommandBed): Promise<boolean> {
  const [row] = await bed.sql(documented(bed)[0]);
  return Number(row['refuse']) === 0;
}

const within = (what: string) => ({ withinMs: 20_000, what });

test('too many pending rows: state, log and flag say so, and again when most of them are gone', async () => {
  await using bed = await CommandBed.open([REFUSE]);
  const outbox = `${bed.database}.outbox`;
  await pending(bed, 10);
  // Rows that are not due wait for their time, not for the relay.
  await pending(bed, 20, 'UTC_TIMESTAMP(6) + INTERVAL 1 HOUR');
  await atWork(bed, async ({ limits, logged }) => {
    await until(() => limits.state[0].pendingRows === 10, within('a first look'));
    expect(limits.state).toEqual([
      { outbox, pendingRows: 10, oldestAgeMs: expect.any(Number) as number, overRows: false, overAge: false },
    ]);
    await until(async () => (await bed.sql('SELECT 1 FROM cdc_relay_limits')).length === 1, within('the flag'));
    expect(await mayInsert(bed)).toBe(true);

    await pending(bed, 500);
    await until(async () => !(await mayInsert(bed)), within('the flag to refuse'));
    // Counted no further than needed.
    expect(limits.state[0]).toMatchObject({ pendingRows: 11, overRows: true, overAge: false });
    const [flag] = await bed.sql(
      'SELECT *, valid_until > UTC_TIMESTAMP(6) + INTERVAL 20 SECOND AS is_valid FROM cdc_relay_limits',
    );
    expect(flag).toMatchObject({ outbox, relay: 'command-test', reason: 'more than 10 rows are pending' });
    expect(Number(flag['is_valid'])).toBe(1);

    await bed.sql("UPDATE outbox SET status = 'published' WHERE available_at <= UTC_TIMESTAMP(6) LIMIT 502");
    await until(async () => await mayInsert(bed), within('the flag to let rows in again'));
    expect(logged).toEqual(['pending-limit-passed', 'pending-limit-kept-again']);
  });
  // What was last seen stays, and says until when it was true.
  expect(await mayInsert(bed)).toBe(true);
});

test('a row that waits too long', async () => {
  await using bed = await CommandBed.open([REFUSE]);
  await pending(bed, 1, 'UTC_TIMESTAMP(6) - INTERVAL 61 SECOND');
  await atWork(bed, async ({ limits }) => {
    await until(async () => !(await mayInsert(bed)), within('the flag to refuse'));
    expect(limits.state[0]).toMatchObject({ pendingRows: 1, overRows: false, overAge: true });
    expect(limits.state[0].oldestAgeMs).toBeGreaterThan(61_000);
  });
});

test('policy none: the state is known and nothing is written; flags that were kept before are taken back', async () => {
  await using bed = await CommandBed.open([{ table: 'outbox', limits: { pendingRows: 1 } }]);
  await bed.sql(
    `INSERT INTO cdc_relay_limits (outbox, relay, refuse, valid_until) VALUES
       ('${bed.database}.outbox', 'command-test', 1, UTC_TIMESTAMP(6)), ('a.b', 'another', 1, UTC_TIMESTAMP(6))`,
  );
  await pending(bed, 5);
  await atWork(bed, async ({ limits }) => {
    await until(() => limits.state[0].overRows, within('the limit to be seen'));
  });
  expect(await bed.sql('SELECT outbox FROM cdc_relay_limits')).toEqual([{ outbox: 'a.b' }]);
});

test('an application that holds the flag’s row holds up no flush; the flag is written when it is let go', async () => {
  await using bed = await CommandBed.open([REFUSE]);
  await atWork(bed, async ({ flush, logged }) => {
    await until(async () => (await bed.sql('SELECT 1 FROM cdc_relay_limits')).length === 1, within('the flag'));
    const application = await bed.connect();
    await application.beginTransaction();
    await application.query('SELECT refuse FROM cdc_relay_limits LOCK IN SHARE MODE');
    await pending(bed, 20);
    await until(() => logged.includes('pending-limits-failed'), within('a write that found it held'));
    const startedMs = performance.now();
    for (let i = 0; i < 20; i++) await flush();
    // Twenty waits for a lock would be twenty seconds.
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    await application.commit();
    await until(async () => !(await mayInsert(bed)), within('the flag to refuse'));
  });
});

test('what the docs tell an application works: in one statement, and when no relay looks any more', async () => {
  await using bed = await CommandBed.open([REFUSE]);
  const [, insert, orStale] = documented(bed);
  const application = await bed.connect();
  await application.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await atWork(bed, async ({ logged }) => {
    await until(async () => (await bed.sql('SELECT 1 FROM cdc_relay_limits')).length === 1, within('the flag'));
    await application.beginTransaction();
    expect((await application.query(insert))[0]).toMatchObject({ affectedRows: 1 });
    await pending(bed, 20);
    // Nothing is held by the transaction that has asked.
    await until(async () => !(await mayInsert(bed)), within('the flag to refuse'));
    expect((await application.query(insert))[0]).toMatchObject({ affectedRows: 0 });
    await application.commit();
    expect(logged).toEqual(['pending-limit-passed']);
  });
  const stale = async () => Number((await bed.sql(orStale))[0]['refuse']);
  await bed.sql('UPDATE cdc_relay_limits SET refuse = 0');
  expect(await stale()).toBe(0);
  await bed.sql('UPDATE cdc_relay_limits SET valid_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND');
  expect(await stale()).toBe(1);
});

test('a relay that leads no longer writes no flag', async () => {
  await using bed = await CommandBed.open([REFUSE]);
  const error = await atWork(bed, async ({ ended }) => {
    await until(async () => (await bed.sql('SELECT 1 FROM cdc_relay_limits')).length === 1, within('the flag'));
    await bed.sql('UPDATE cdc_relay_offsets SET epoch = epoch + 1');
    await pending(bed, 20);
    await ended;
  });
  expect(error).toMatchObject({ fault: { code: 'LEADERSHIP_LOST' } });
  expect(await mayInsert(bed)).toBe(true);
});

test('without limits it has nothing to do', async () => {
  await using bed = await CommandBed.open();
  await atWork(bed, async ({ limits, ended }) => {
    expect(await ended).toBeUndefined();
    expect(limits.state).toEqual([]);
  });
});
