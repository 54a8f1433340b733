import { expect, test } from 'vitest';
import { tally } from '../../../src/model/stats.ts';
import { TopicLabels } from '../../../src/observability/topic-labels.ts';
import { Looked, termAt } from './sources.ts';

test('L3 a tail that stands still while the log grows: the lag grows with the time, from the first look on', async () => {
  const relay = new Looked();
  relay.head = 100;
  relay.flows(termAt(100));
  expect((await relay.after(1)).verdict).toMatchObject({ word: 'FLOWING', lagMs: 0 });
  relay.head = 200;
  expect((await relay.after(1)).verdict.lagMs).toBe(0);
  for (const seconds of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
    relay.head += 10;
    expect((await relay.after(1)).verdict.lagMs).toBe(seconds * 1_000);
  }
  expect((await relay.after(1)).verdict).toMatchObject({ word: 'STUCK', lagMs: 10_000, stuck: [{ part: 'tail' }] });
  expect(relay.logged.at(-1)).toContain('"to":"STUCK","part":"tail"');
  relay.flows(termAt(relay.head));
  expect((await relay.after(1)).verdict).toMatchObject({ word: 'FLOWING', lagMs: 0 });
});

test('a tail that moves behind a log that grows: the lag is from the oldest end of the log that it has not reached', async () => {
  const relay = new Looked();
  relay.flows(termAt(0));
  for (relay.head = 10; relay.head <= 100; relay.head += 10) await relay.after(1);
  // Ends of 10 to 100 were seen 9 to 0 seconds ago.
  for (const [routed, lagMs] of [
    [0, 9_000],
    [10, 8_000],
    [15, 8_000],
    [50, 4_000],
    [99, 0],
    [100, 0],
  ] as const) {
    relay.stats.term = termAt(routed);
    expect(relay.observer.look().verdict.lagMs).toBe(lagMs);
  }
});

test('a log of others, long after the last transaction of ours: no lag from its commit time', async () => {
  const relay = new Looked();
  relay.head = 100;
  relay.flows(termAt(100));
  await relay.after(1);
  relay.stats.lastRouted = { atMs: relay.nowMs, commitMicros: Date.now() * 1_000 };
  await relay.after(7_200);
  relay.head = 200;
  await relay.after(1);
  expect(relay.observer.look().verdict.lagMs).toBe(0);
});

test('an old log that is caught up with: the lag is the age of what is read', async () => {
  const relay = new Looked();
  relay.head = 1_000;
  relay.flows(termAt(100));
  await relay.after(1);
  relay.stats.lastRouted = { atMs: relay.nowMs, commitMicros: (Date.now() - 3_600_000) * 1_000 };
  const { verdict, notReady } = relay.observer.look();
  expect(verdict.word).toBe('CATCHING UP');
  expect(verdict.lagMs! / 1_000).toBeCloseTo(3_600, -1);
  expect(notReady).toEqual(['LAG']);
});

test('MySQL silent: UNKNOWN, the lag grows, and what was known of it is told no longer', async () => {
  const relay = new Looked();
  relay.flows(termAt(0));
  expect((await relay.after(1)).database).not.toBeNull();
  relay.head = null;
  expect((await relay.after(5)).verdict.word).toBe('FLOWING');
  const sight = await relay.after(20);
  expect(sight.verdict).toMatchObject({ word: 'UNKNOWN', lagMs: 24_000 });
  expect(sight).toMatchObject({ database: null, notReady: ['UNKNOWN'] });
  expect(await relay.samples()).not.toContainEqual(expect.stringContaining('cdc_relay_pending_rows{'));
});

test('limits that are passed count for the leader alone', async () => {
  const relay = new Looked();
  const limit = { outbox: 'app.outbox', pendingRows: 9, oldestAgeMs: 9, overRows: true, overAge: true };
  relay.limits = [limit];
  relay.flows(termAt(0));
  expect((await relay.after(1)).notReady).toEqual(['PENDING_ROWS', 'PENDING_AGE']);
  Object.assign(relay.stats, { phase: 'standby', epoch: null, term: null });
  expect((await relay.after(1)).notReady).toEqual([]);
});

test('metrics: what cannot be said now is not there; counts stay', async () => {
  const relay = new Looked();
  relay.flows(termAt(0));
  relay.stats.tailRows[1] = 7;
  relay.stats.sweptRows.set('DUE', [2]);
  tally(relay.stats.sweptRows, 'XA', 1, 5);
  await relay.after(1);
  const leading = await relay.samples();
  expect(leading).toContain('cdc_relay_lag_seconds 0');
  expect(leading).toContain('cdc_relay_in_flight_limit_bytes 1000000');
  expect(leading).toContain('cdc_relay_rows_total{outbox="app.outbox",way="tail"} 0');
  expect(leading).toContain('cdc_relay_rows_total{outbox="app.invoices",way="tail"} 7');
  expect(leading).toContain('cdc_relay_rows_total{outbox="app.outbox",way="sweep"} 2');
  expect(leading).toContain('cdc_relay_rows_total{outbox="app.invoices",way="sweep"} 5');
  expect(leading).toContain('cdc_relay_swept_rows_total{outbox="app.outbox",cause="DUE"} 2');
  expect(leading).toContain('cdc_relay_swept_rows_total{outbox="app.invoices",cause="XA"} 5');
  expect(leading).toContain('cdc_relay_pending_rows{outbox="app.outbox"} 0');
  expect(await relay.samples()).toEqual(leading);

  Object.assign(relay.stats, { phase: 'standby', epoch: null, term: null });
  await relay.after(1);
  const standby = await relay.samples();
  expect(standby).toContain('cdc_relay_state{state="STANDBY"} 1');
  expect(standby).toContain('cdc_relay_rows_total{outbox="app.invoices",way="tail"} 7');
  for (const gone of ['lag_seconds', 'in_flight', 'parked_scopes', 'leader_epoch']) {
    expect(standby).not.toContainEqual(expect.stringContaining(`cdc_relay_${gone}`));
  }
});

test('metrics of what the database says; what it does not say is not there', async () => {
  const relay = new Looked();
  relay.flows(termAt(0));
  relay.database = {
    leader: { owner: 'relay-1:7', epoch: 3 },
    paused: { sinceMs: 5_000, by: 'me@here' },
    purge: { inMs: 86_400_000, expireMs: 172_800_000, keptBytes: 4_096, behindBytes: 512 },
  };
  const job = { id: '7', kind: 'republish', startedMsAgo: null, done: null, total: null } as const;
  const running = { ...job, id: '6', state: 'running', done: 30, total: 90 } as const;
  relay.surroundings = { standbys: 1, oldestParkedMs: 9_000, jobs: [running, { ...job, state: 'queued' }] };
  await relay.after(1);
  const said = await relay.samples();
  for (const sample of [
    'purge_headroom_seconds 86400',
    'purge_kept_bytes 4096',
    'checkpoint_behind_bytes 512',
    'checkpoint_age_seconds 0',
    'paused 1',
    'standbys 1',
    'oldest_parked_seconds 9',
    'jobs{state="queued"} 1',
    'jobs{state="running"} 1',
    'job_rows{at="done"} 30',
    'job_rows{at="total"} 90',
    'processing_rows{outbox="app.outbox"} 0',
    'stuck{part="tail"} 0',
    'stuck{part="kafka"} 0',
  ]) {
    expect(said).toContain(`cdc_relay_${sample}`);
  }

  relay.database = { purge: { inMs: null, expireMs: null, keptBytes: null, behindBytes: null } };
  relay.surroundings = {};
  await relay.after(5);
  const silent = await relay.samples();
  expect(silent).toContain('cdc_relay_paused 0');
  expect(silent).toContain('cdc_relay_oldest_parked_seconds 0');
  for (const gone of ['purge_', 'checkpoint_behind', 'standbys', 'job_rows']) {
    expect(silent).not.toContainEqual(expect.stringContaining(`cdc_relay_${gone}`));
  }
});

test('the age of the checkpoint grows while something of ours is behind it, and not where nothing is written', async () => {
  const relay = new Looked();
  const age = async (): Promise<number | null> => (await relay.after(1)).checkpointAgeMs;
  expect(await age()).toBeNull();
  relay.flows(termAt(0));
  expect([await age(), await age()]).toEqual([0, 0]);
  const window = { openTransactions: 1, oldestCommitMicros: null };
  relay.stats.term = termAt(500, { checkpoint: termAt(0).checkpoint, window });
  expect([await age(), await age()]).toEqual([1_000, 2_000]);
  relay.stats.term = termAt(500, { checkpoint: termAt(300).checkpoint, window });
  expect([await age(), await age()]).toEqual([0, 1_000]);
  relay.stats.term = termAt(500);
  expect([await age(), await age()]).toEqual([0, 0]);
  relay.head = 900;
  expect([await age(), await age()]).toEqual([1_000, 2_000]);
  relay.stats.term = termAt(500, { isTailing: false });
  expect(await age()).toBeNull();
});

test('topics as labels are bounded', () => {
  const topics = new TopicLabels();
  const labels = new Set(Array.from({ length: 10_000 }, (_, n) => topics.of(`topic-${n}`)));
  expect(labels.size).toBe(101);
  expect(topics.of('topic-3')).toBe('topic-3');
});
