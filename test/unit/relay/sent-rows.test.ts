import { beforeEach, describe, expect, it } from 'vitest';
import { AckWindow } from '../../../src/delivery/ack-window.ts';
import { Batch, SWEPT } from '../../../src/delivery/batch.ts';
import type { Clock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Log, LogFields } from '../../../src/model/log.ts';
import { type Field, Form, type OutboxRow } from '../../../src/model/row.ts';
import type { RowId, RowIds } from '../../../src/model/row-ids.ts';
import type { OutboxSettings } from '../../../src/model/settings.ts';
import { newRelayStats, type RelayStats } from '../../../src/model/stats.ts';
import type { SavedOffsets, ServerFacts, Store } from '../../../src/model/store.ts';
import { SentRows } from '../../../src/relay/sent-rows.ts';
import { madeRow } from '../delivery/rows.ts';

const ROOM_BYTES = 512 * 1024;

/** What the server has: by outbox, idempotency keys by id. */
let tables: Map<RowId, Field>[];
let asked: number;
let lines: { event: string; fields: LogFields }[];
let stats: RelayStats;
let nowMs: number;
let sent: SentRows;
beforeEach(async () => {
  tables = [new Map<RowId, Field>(), new Map<RowId, Field>()];
  asked = 0;
  lines = [];
  stats = newRelayStats();
  nowMs = 0;
  sent = new SentRows(clock);
  await sent.compare(on('A', null));
});

describe('S1 rows that were sent', () => {
  it('and that another server lacks are told by their ids, once', async () => {
    send([1, 2, 3, 4, 5, 9]);
    has(0, [1, 3]);
    await sent.compare(on('B', null));
    expect(told()).toEqual([{ table: 'app.marked', rows: 4, ids: '2, 4..5, 9' }]);
    expect(stats.sentRowsMissing).toEqual([4]);
    await sent.compare(on('C', null));
    expect(told()).toHaveLength(1);
  });

  it('whose id another row has are missing', async () => {
    send([1, 2]);
    has(0, [1]);
    tables[0].set(2n, madeRow(77, 'a').idempotencyKey);
    await sent.compare(on('B', null));
    expect(told()).toEqual([{ table: 'app.marked', rows: 1, ids: '2' }]);
  });

  it('are not looked for on the server that they came from', async () => {
    send([1, 2]);
    await sent.compare(on('A', null));
    expect(asked).toBe(0);
  });

  it('are looked for there when its position was of no use: a backup may have been restored', async () => {
    send([1, 2], { end: 500 });
    has(0, [1]);
    await sent.compare(on('A', saved('A', 400)));
    expect(told()).toEqual([{ table: 'app.marked', rows: 1, ids: '2' }]);
  });

  it('before what the server says was routed are there, whether or not they were deleted since', async () => {
    send([1, 2], { end: 500, outbox: 1 });
    send([3, 4], { end: 600, outbox: 1 });
    await sent.compare(on('B', saved('A', 500)));
    expect(told()).toEqual([{ table: 'app.deleted', rows: 2, ids: '3..4' }]);
  });

  it('and deleted say nothing where nobody knows how much of the log the server has', async () => {
    send([1, 2], { outbox: 1 });
    await sent.compare(on('B', saved('C', 4)));
    expect(told()).toEqual([]);
  });

  it('by the sweep are looked for, but for those that it deletes', async () => {
    send([1], { transaction: SWEPT });
    send([2], { transaction: SWEPT, outbox: 1 });
    await sent.compare(on('B', saved('A', 1_000)));
    expect(told()).toEqual([{ table: 'app.marked', rows: 1, ids: '1' }]);
  });

  it('are told by the next term where the comparison fails', async () => {
    send([1], { end: 500, outbox: 1 });
    const failing = { idempotencyKeys: () => Promise.reject(fault('MYSQL_UNREACHABLE', 'retry', 'gone')) };
    const deps = on('B', saved('A', 400));
    await expect(sent.compare({ ...deps, store: failing as unknown as Store })).rejects.toThrow('gone');
    await sent.compare(on('B', null));
    expect(told()).toEqual([{ table: 'app.deleted', rows: 1, ids: '1' }]);
  });

  it('with keys of bytes are known by them', async () => {
    send([1, 2], { key: (id) => Buffer.from(`key ${id}`) });
    tables[0].set(Buffer.from('key 1').toString('hex'), madeRow(1, 'a').idempotencyKey);
    await sent.compare(on('B', null));
    expect(told()).toEqual([{ table: 'app.marked', rows: 1, ids: 'key 2' }]);
  });

  it('and taken out of a batch take their fingerprints along', async () => {
    const batch = batchOf([1, 2, 3, 4], { transaction: SWEPT });
    const odd = batch.extract(({ index }) => index % 2 === 0)!;
    for (const each of [batch, odd]) sent.add(each, new AckWindow(START, null));
    has(0, [1, 2, 3, 4]);
    await sent.compare(on('B', null));
    expect(told()).toEqual([]);
  });
});

describe('what is kept', () => {
  it('is some 100,000 rows of an outbox, the last ones', async () => {
    for (let n = 0; n < 130; n++) send(Array.from({ length: 1_000 }, (_, i) => n * 1_000 + i));
    await sent.compare(on('B', null));
    const [{ rows, ids }] = told() as [{ rows: number; ids: string }];
    expect(rows).toBeGreaterThan(90_000);
    expect(rows).toBeLessThan(110_000);
    expect(ids).toMatch(/\.\.129999$/);
  });

  it('is what was sent in the last minutes', async () => {
    send([1]);
    nowMs = 700_000;
    send([2]);
    await sent.compare(on('B', null));
    expect(told()).toEqual([{ table: 'app.marked', rows: 1, ids: '2' }]);
  });
});

const clock: Clock = { nowMs: () => nowMs, after: () => () => undefined };
const START = { position: at(4), gtidSet: null, lastBegin: null, lastGtid: null, lastCommitMicros: null };
const OUTBOXES = [
  { schema: 'app', table: 'marked', retire: 'mark' },
  { schema: 'app', table: 'deleted', retire: 'delete' },
] as unknown as readonly OutboxSettings[];

function at(offset: number) {
  return { file: 'binlog.000003', offset };
}

interface Sending {
  readonly end?: number;
  readonly outbox?: number;
  readonly transaction?: number;
  readonly key?: (id: number) => Buffer;
}

function send(ids: readonly number[], sending: Sending = {}): void {
  const window = new AckWindow(START, null);
  const transaction = window.open({
    end: at(sending.end ?? 100),
    ...{ beginOffset: -1, gtid: null, commitMicros: 1, skipped: [], pieces: null, undecodable: null },
    rows: () => {
      throw new Error('not asked for');
    },
  });
  sent.add(batchOf(ids, { transaction, ...sending }), window);
}

function batchOf(ids: readonly number[], { transaction = 0, outbox = 0, key }: Sending): Batch {
  const batch = new Batch();
  batch.begin(Buffer.alloc(ROOM_BYTES));
  for (const id of ids) {
    const row = madeRow(id, 'a', 10, outbox);
    if (key !== undefined) put(row, key(id));
    batch.append(row, transaction, 0);
  }
  return batch;
}

function put({ idBytes }: OutboxRow, bytes: Buffer): void {
  Object.assign(idBytes, { form: Form.Text, buffer: bytes, start: 0, end: bytes.length });
}

function has(outbox: number, ids: readonly number[]): void {
  for (const id of ids) tables[outbox].set(BigInt(id), madeRow(id, 'a').idempotencyKey);
}

function saved(serverUuid: string, high: number): SavedOffsets {
  return { serverUuid, checkpoint: START, high: at(high) };
}

function on(serverUuid: string, abandoned: SavedOffsets | null) {
  const store = {
    idempotencyKeys: (outbox: number, ids: RowIds) => {
      asked++;
      const wanted = new Set<RowId>(ids);
      return Promise.resolve(new Map([...tables[outbox]].filter(([id]) => wanted.has(id))));
    },
  } as unknown as Store;
  const facts: ServerFacts = { version: '9.7.0', flavour: 'mysql', serverUuid, gtidMode: true };
  return { store, facts, outboxes: OUTBOXES, abandoned, log, stats };
}

const log = new Proxy({} as Log, {
  get: () => (event: string, fields: LogFields) => lines.push({ event, fields }),
});

function told(): Record<string, unknown>[] {
  const missing = lines.filter(({ event }) => event === 'sent-rows-missing');
  return missing.map(({ fields: { table, rows, ids } }) => ({ table, rows, ids }));
}
