import { createHash } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { failedShowSchema } from '../../../src/commands/failed-report.ts';
import { failedActionSchema, failedListSchema } from '../../../src/http/failed-view.ts';
import { CommandBed, numbers } from './command-bed.ts';

const SECRET = 'hunter2hunter2';

function failed(over: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    topic: 'orders',
    aggregate_id: 'order-1',
    event_type: 'Placed',
    payload: `{"card": "${SECRET}"}`,
    headers: `{"token": "${SECRET}"}`,
    status: 'failed',
    attempts: 3,
    last_error: 'MESSAGE_TOO_LARGE: 2,000,000 bytes',
    ...over,
  };
}

async function statuses(bed: CommandBed, table = 'outbox'): Promise<Record<string, string>> {
  const rows = await bed.sql(`SELECT id, status FROM ${table}`);
  return Object.fromEntries(rows.map((row) => [String(row['id']), String(row['status'])]));
}

test('list: nothing, then the failed rows, newest first, escaped and without payload', async () => {
  await using bed = await CommandBed.open();
  expect(await bed.cli(['failed', 'list'])).toMatchObject({ code: 0, stdout: 'no failed rows\n', stderr: '' });

  const old = await bed.insert(failed({ available_at: '2026-01-01 00:00:00' }));
  const evil = await bed.insert(failed({ aggregate_id: 'a\u001b[31m\nü', last_error: 'ROW_ENCODING: no UTF-8' }));
  await bed.insert({ topic: 'orders', aggregate_id: 'a', payload: '1' });
  const { code, stdout, stderr } = await bed.cli(['failed', 'list']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toBe(`2 failed rows of ${bed.database}.outbox`);
  expect(lines[1]).toMatch(/^id +topic +aggregate +attempts +age +error$/);
  expect(lines[2]).toMatch(
    new RegExp(String.raw`^${evil} +orders +a\\x1b\[31m\\x0a\\xfc +3 +\d\.\d s +ROW_ENCODING: no UTF-8$`),
  );
  expect(lines[3]).toMatch(new RegExp(`^${old} +orders +order-1 .*MESSAGE_TOO_LARGE: 2,000,000 bytes$`));
  expect(lines[4]).toContain(`cdc-relay failed show ${evil}`);
  expect(stdout).toMatch(/^[\x20-\x7e\n]*$/);
  expect(stdout).not.toContain(SECRET);
});

test('list: filters by topic, reason, age; --limit says that there is more; JSON holds its schema', async () => {
  await using bed = await CommandBed.open();
  const a = await bed.insert(failed());
  const b = await bed.insert(failed({ topic: 'bills', created_at: '2026-01-01 00:00:00' }));
  const c = await bed.insert(failed({ last_error: 'ROW_ENCODING: no UTF-8', available_at: '2026-01-01 00:00:00' }));
  const ids = async (...args: string[]): Promise<string[]> => {
    const { code, stdout } = await bed.cli(['failed', 'list', '--json', ...args]);
    expect(code).toBe(0);
    expect(stdout).not.toContain(SECRET);
    const report = failedListSchema.parse(JSON.parse(stdout));
    return [...report.rows.map(({ id }) => id), ...(report.more ? ['more'] : [])];
  };
  expect(await ids()).toEqual([b, a, c]);
  expect(await ids('--topic', 'orders')).toEqual([a, c]);
  expect(await ids('--reason', 'ROW_ENCODING')).toEqual([c]);
  expect(await ids('--reason', '_%')).toEqual([]);
  expect(await ids('--since', '2h')).toEqual([a, c]);
  expect(await ids('--since', '2025-12-31')).toEqual([b, a, c]);
  expect(await ids('--topic', 'orders', '--since', '2026-01-01T00:01Z', '--limit', '1')).toEqual([a, 'more']);
  expect(await ids('--limit', '3')).toEqual([b, a, c]);
});

test('show: every fact; payload and headers by the size and SHA-256 of what Kafka would get', async () => {
  await using bed = await CommandBed.open();
  const id = await bed.insert(failed());
  const text = `{"card": "${SECRET}"}`;
  const sha256 = createHash('sha256').update(text).digest('hex');
  const { code, stdout } = await bed.cli(['failed', 'show', id]);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^FAILED {2}row ${id}\n`));
  expect(stdout).toContain(`payload    ${text.length} bytes, SHA-256 ${sha256} (not shown)`);
  expect(stdout).toContain('aggregate  order-1');
  expect(stdout).not.toContain(SECRET);
  const json = await bed.cli(['failed', 'show', id, '--json']);
  expect(failedShowSchema.parse(JSON.parse(json.stdout))).toMatchObject({
    row: { id, topic: 'orders', keyHex: Buffer.from('order-1').toString('hex'), attempts: 3, status: 'failed' },
    payload: { bytes: text.length, sha256 },
  });
  expect(json.stdout).not.toContain(SECRET);

  const pending = await bed.insert({ topic: 'orders', aggregate_id: 'a' });
  const other = await bed.cli(['failed', 'show', pending]);
  expect(other.code).toBe(1);
  expect(other.stdout).toMatch(/^PENDING {2}row/);
  expect(await bed.cli(['failed', 'show', '999'])).toMatchObject({
    code: 1,
    stderr: `error: ${bed.database}.outbox has no row 999\n`,
  });
  expect((await bed.cli(['failed', 'show', 'x'])).code).toBe(2);
});

test('retry one: pending, due, nothing on its account; recorded with who, and told with what it means', async () => {
  await using bed = await CommandBed.open();
  const id = await bed.insert(failed({ available_at: '2030-01-01 00:00:00', claimed_at: '2026-01-01 00:00:00' }));
  for (const topic of ['orders', 'orders', 'bills']) {
    await bed.insert({ topic, aggregate_id: 'order-1', status: 'published' });
  }
  await bed.insert({ topic: 'orders', aggregate_id: 'Order-1', status: 'published' });
  const { code, stdout, stderr } = await bed.cli(['failed', 'retry', id]);
  expect(code).toBe(0);
  expect(stdout).toBe(
    `${bed.database}.outbox ${id}  pending again  orders / order-1  (MESSAGE_TOO_LARGE: 2,000,000 bytes)\n`,
  );
  expect(stderr).toContain('order   2 later events of their aggregates are published already');
  const [row] = await bed.sql('SELECT *, available_at <= UTC_TIMESTAMP(6) AS due FROM outbox WHERE id = ?', [id]);
  expect(row).toMatchObject({ status: 'pending', attempts: 0, last_error: null, claimed_at: null });
  expect(Number(row['due'])).toBe(1);

  const actions = await bed.sql('SELECT *, at > UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE AS fresh FROM cdc_relay_actions');
  expect(actions).toHaveLength(1);
  expect(actions[0]).toMatchObject({
    relay: 'command-test',
    who: `${userInfo().username}@${hostname()}`,
    action: 'retry',
    outbox: `${bed.database}.outbox`,
    row_id: id,
    topic: 'orders',
    aggregate_key: Buffer.from('order-1'),
    reason: 'MESSAGE_TOO_LARGE: 2,000,000 bytes',
  });
  expect(String(actions[0]['account'])).toMatch(/^.+@.+$/);
  expect(Number(actions[0]['fresh'])).toBe(1);

  // Again: there is nothing failed any more, and nothing is recorded.
  const again = await bed.cli(['failed', 'retry', id]);
  expect(again.code).toBe(1);
  expect(again.stdout).toBe(`${bed.database}.outbox ${id}  left: not there, or not failed\n`);
  expect(await bed.sql('SELECT id FROM cdc_relay_actions')).toHaveLength(1);
});

test('available_at stays as it is when it is not in the future', async () => {
  await using bed = await CommandBed.open();
  const id = await bed.insert(failed({ available_at: '2026-01-01 00:00:00.123456' }));
  expect((await bed.cli(['failed', 'retry', id])).code).toBe(0);
  const [row] = await bed.sql('SELECT available_at FROM outbox');
  expect(row['available_at']).toBe('2026-01-01 00:00:00.123456');
});

test('discard deletes the row and says that it is never delivered', async () => {
  await using bed = await CommandBed.open();
  const id = await bed.insert(failed());
  const stays = await bed.insert({ topic: 'orders', aggregate_id: 'a' });
  const { code, stderr, stdout } = await bed.cli(['failed', 'discard', id]);
  expect(code).toBe(0);
  expect(stdout).toContain(`${id}  deleted  orders / order-1`);
  expect(stderr).toContain('never delivered');
  expect(await statuses(bed)).toEqual({ [stays]: 'pending' });
  expect(await bed.sql('SELECT action FROM cdc_relay_actions')).toEqual([{ action: 'discard' }]);
});

test('many: a dry run changes nothing, without a terminal it needs --yes, then all that match are done', async () => {
  await using bed = await CommandBed.open();
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, status, last_error)
     SELECT 'orders', n, 'failed', 'MESSAGE_TOO_LARGE: x' FROM ${numbers(900)}`,
  );
  const other = await bed.insert(failed({ topic: 'bills' }));
  const filter = ['--all', '--topic', 'orders', '--json'];
  const dry = await bed.cli(['failed', 'retry', ...filter, '--dry-run']);
  expect(dry.code).toBe(0);
  const report = failedActionSchema.parse(JSON.parse(dry.stdout));
  expect(report.rows).toHaveLength(900);
  expect(new Set(report.rows.map(({ outcome }) => outcome))).toEqual(new Set(['would']));
  expect(dry.stderr).toContain('... and 880 more');

  const refused = await bed.cli(['failed', 'retry', ...filter]);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('error: retry 900 rows: there is no terminal to ask on');
  expect(new Set(Object.values(await statuses(bed)))).toEqual(new Set(['failed']));

  const done = await bed.cli(['failed', 'retry', ...filter, '--yes']);
  expect(done.code).toBe(0);
  const rows = failedActionSchema.parse(JSON.parse(done.stdout)).rows;
  expect(rows.filter(({ outcome }) => outcome === 'done')).toHaveLength(900);
  const [count] = await bed.sql("SELECT COUNT(*) AS n FROM outbox WHERE status = 'pending'");
  expect(Number(count['n'])).toBe(900);
  const [recorded] = await bed.sql(
    'SELECT COUNT(DISTINCT row_id) AS n, COUNT(*) AS all_of_them FROM cdc_relay_actions',
  );
  expect([Number(recorded['n']), Number(recorded['all_of_them'])]).toEqual([900, 900]);
  expect((await statuses(bed))[other]).toBe('failed');
});

test('a row that the application holds is left, at once, and the exit code says so', async () => {
  await using bed = await CommandBed.open();
  const ids = [await bed.insert(failed()), await bed.insert(failed())];
  const application = await bed.connect();
  await application.beginTransaction();
  await application.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[0]]);
  const { code, stdout } = await bed.cli(['failed', 'discard', ...ids, '--yes']);
  expect(code).toBe(1);
  expect(stdout).toContain(`${ids[0]}  left: another transaction holds it; run it again`);
  expect(stdout).toContain(`${ids[1]}  deleted`);
  await application.rollback();
  expect(await statuses(bed)).toEqual({ [ids[0]]: 'failed' });
});

test('several outboxes: ids need --outbox, --all takes them all, one that is kept takes no part', async () => {
  await using bed = await CommandBed.open([
    { table: 'a' },
    { table: 'b', topic: { fixed: 'bills' }, retire: 'delete' },
    { table: 'kept', retire: 'keep' },
  ]);
  const [inA, inB] = [await bed.insert(failed(), 'a'), await bed.insert(failed(), 'b')];
  const unclear = await bed.cli(['failed', 'retry', inA]);
  expect(unclear).toMatchObject({ code: 2, stdout: '' });
  expect(unclear.stderr).toContain(`--outbox ${bed.database}.a or ${bed.database}.b`);
  expect((await bed.cli(['failed', 'list', '--outbox', 'kept'])).code).toBe(2);
  const list = await bed.cli(['failed', 'list', '--json', '--topic', 'bills']);
  expect(failedListSchema.parse(JSON.parse(list.stdout)).rows.map(({ outbox }) => outbox)).toEqual([
    `${bed.database}.b`,
  ]);
  expect((await bed.cli(['failed', 'retry', inA, '--outbox', 'a'])).code).toBe(0);
  expect([await statuses(bed, 'a'), await statuses(bed, 'b')]).toEqual([{ [inA]: 'pending' }, { [inB]: 'failed' }]);
  const all = await bed.cli(['failed', 'retry', '--all']);
  expect(all.code).toBe(0);
  expect(all.stderr).toContain('whether later events of their aggregates are published already is not known');
  expect(await statuses(bed, 'b')).toEqual({ [inB]: 'pending' });
});

test.each([
  ['VARCHAR(64) COLLATE utf8mb4_unicode_ci', "Ré'`1", "Ré'`1", "RE'`1"],
  ['BINARY(16)', Buffer.alloc(16, 0xab), 'abababab-abab-abab-abab-abababababab', 'ABAB'],
])(
  'ids of type %s are written as people write them; a topic made of columns can be filtered',
  async (type, id, text, other) => {
    const columns = { id: 'event_id' };
    await using bed = await CommandBed.open([{ table: 'own', columns, topic: { template: 'o.{event_type}' } }]);
    await bed.sql(
      `CREATE TABLE own (event_id ${type} PRIMARY KEY, aggregate_id VARCHAR(20), event_type VARCHAR(20), payload TEXT,
       headers TEXT, idempotency_key VARCHAR(64), status VARCHAR(20), available_at DATETIME(6), claimed_at DATETIME(6),
       claimed_by BINARY(16), attempts INT, last_error TEXT, created_at DATETIME(6), published_at DATETIME(6))`,
    );
    const row = {
      aggregate_id: 'a',
      event_type: 'x',
      status: 'failed',
      available_at: '2026-01-01 00:00:00',
      attempts: 1,
    };
    await bed.insert({ ...row, event_id: id }, 'own');
    const list = await bed.cli(['failed', 'list', '--json', '--topic', 'o.x']);
    const { rows } = failedListSchema.parse(JSON.parse(list.stdout));
    expect(rows.map((each) => [each.id, each.topic])).toEqual([[text, 'o.x']]);
    expect(await bed.cli(['failed', 'retry', other])).toMatchObject({ code: 1 });
    expect(await bed.sql('SELECT status FROM own')).toEqual([{ status: 'failed' }]);
    expect((await bed.cli(['failed', 'retry', text])).code).toBe(0);
    expect(await bed.sql('SELECT status FROM own')).toEqual([{ status: 'pending' }]);
    expect(await bed.sql('SELECT row_id FROM cdc_relay_actions')).toEqual([{ row_id: text }]);
  },
);

test('wrong usage ends with 2 and says what is expected', async () => {
  await using bed = await CommandBed.open();
  for (const [args, message] of [
    [['failed', 'retry'], 'which rows?'],
    [['failed', 'retry', '1', '--all'], 'ids go without --all'],
    [['failed', 'list', '--since', 'yesterday'], '--since: expected a number with s, m, h or d'],
    [['failed', 'list', '--limit', '0'], '--limit: expected a whole number from 1 to 10,000'],
    [['failed', 'list', '--topic', 'ü'], '--topic: expected text in ASCII'],
    [['failed', 'list', '--outbox', 'nope'], '--outbox: no outbox of that name'],
    [['failed', 'list', '1'], 'too many arguments'],
    [['failed', 'show'], "missing required argument 'id'"],
  ] as const) {
    const { code, stdout, stderr } = await bed.cli(args);
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
    expect(stderr).toContain(message);
  }
});

test('tables that are missing are named with what makes them', async () => {
  await using bed = await CommandBed.open();
  const id = await bed.insert(failed());
  await bed.sql('DROP TABLE cdc_relay_actions');
  const { code, stderr } = await bed.cli(['failed', 'discard', id]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    'cdc-relay check names the tables and columns that are missing; cdc-relay migrate creates tables',
  );
  expect(await statuses(bed)).toEqual({ [id]: 'failed' });
});
