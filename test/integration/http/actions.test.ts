import { expect, test } from 'vitest';
import { failedActionSchema, failedListSchema } from '../../../src/http/failed-view.ts';
import { historySchema } from '../../../src/http/history-view.ts';
import { parkedListSchema } from '../../../src/http/parked-view.ts';
import { freePort } from '../../stack/ports.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';
import { type Ask, Relayed } from './http-client.ts';

const TOKEN = 'a-token-of-some-length';
const POST = { method: 'POST', headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' } };

const post = (body: unknown, headers: Record<string, string> = {}): Ask => {
  return { ...POST, headers: { ...POST.headers, ...headers }, body: JSON.stringify(body) };
};

test('acts over HTTP: only with the token, as JSON and for nobody else’s page; done and recorded like those of the command line; without one on the relay nobody acts', async () => {
  await using bed = await RelayBed.open();
  const port = await freePort();
  const relay = new Relayed(port);
  const process = await bed.start({ http: { port, token: TOKEN }, failures: { maxAttempts: 1 } });
  const outbox = `${bed.servers.database}.outbox`;
  for (const key of ['a', 'b']) {
    await bed.sql(
      "INSERT INTO outbox (topic, aggregate_id, event_type, payload) VALUES ('not a topic', ?, 'p', '{}')",
      [key],
    );
  }
  await bed.sql("INSERT INTO outbox (topic, aggregate_id, event_type, payload) VALUES (?, 'a', 'p', '{}')", [
    bed.servers.topic('missing'),
  ]);
  const failedRows = () => bed.count('outbox', "status = 'failed'");
  await until(async () => (await failedRows()) === 2, { withinMs: 20_000, what: 'two rows that failed' });
  const { authorization } = POST.headers;
  const get = async (path: string): Promise<unknown> => {
    expect((await relay.ask(path)).code).toBe(401);
    return JSON.parse((await relay.ask(path, { headers: { authorization } })).body);
  };
  const { rows } = failedListSchema.parse(await get('/failed?limit=5'));
  expect(rows.map(({ key }) => key).sort()).toEqual(['a', 'b']);
  await until(async () => parkedListSchema.parse(await get('/parked')).parked.length === 1, {
    withinMs: 20_000,
    what: 'a topic that is parked',
  });
  expect(historySchema.parse(await get('/history'))).toMatchObject({ stepMs: 5_000 });
  expect((await relay.ask('/failed?limit=0', { headers: { authorization } })).code).toBe(400);

  const ids = rows.map(({ id }) => id);
  const retry = { outbox, ids: [ids[0]] };
  const refused: [number, Ask][] = [
    [401, post(retry, { authorization: '' })],
    [401, post(retry, { authorization: 'Bearer wrong' })],
    [401, post(retry, { authorization: '', cookie: `token=${TOKEN}` })],
    [403, post(retry, { origin: 'https://elsewhere.example' })],
    [403, post(retry, { origin: 'null' })],
    [403, post(retry, { 'sec-fetch-site': 'cross-site' })],
    [403, post(retry, { 'sec-fetch-site': 'same-site' })],
    [415, post(retry, { 'content-type': 'application/x-www-form-urlencoded' })],
    [415, post(retry, { 'content-type': 'text/plain' })],
    [400, post({ outbox: 1, ids: [], more: true })],
    [400, post({ outbox: 'no.such', ids })],
    [400, post({ outbox, ids: ['not-a-number'] })],
    [400, { ...POST, body: '{' }],
    [413, post({ outbox, ids: ['1'.repeat(70_000)] })],
  ];
  for (const [code, how] of refused) expect([code, (await relay.ask('/failed/retry', how)).code]).toEqual([code, code]);
  const faults = await relay.ask('/failed/retry', post({ outbox: 1, ids: [], more: true }));
  expect(faults.body).toMatch(/outbox.*ids.*more/);
  expect(await bed.count('cdc_relay_actions')).toBe(0);
  expect(await failedRows()).toBe(2);

  const same = { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-origin' };
  const discarded = await relay.ask('/failed/discard', post({ outbox, ids }, same));
  expect(failedActionSchema.parse(JSON.parse(discarded.body)).rows.map(({ outcome }) => outcome)).toEqual([
    'done',
    'done',
  ]);
  const again = failedActionSchema.parse(JSON.parse((await relay.ask('/failed/retry', post(retry))).body));
  expect(again.rows).toMatchObject([{ id: ids[0], outcome: 'not-failed' }]);
  expect(await bed.sql('SELECT DISTINCT action, who FROM cdc_relay_actions')).toEqual([
    { action: 'discard', who: 'http 127.0.0.1' },
  ]);
  expect(await bed.count('outbox', "topic = 'not a topic'")).toBe(0);

  expect((await relay.ask('/jobs/999/cancel', post({}))).code).toBe(404);
  expect((await relay.ask('/jobs/x/cancel', post({}))).code).toBe(400);
  expect(JSON.parse((await relay.ask('/pause', post({}))).body)).toEqual({ paused: true });
  await until(async () => (await relay.ready())?.state === 'PAUSED', { withinMs: 20_000, what: 'PAUSED' });
  expect(JSON.parse((await relay.ask('/resume', post({}))).body)).toEqual({ paused: false });
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that goes on' });
  expect(process.lines().filter(({ event }) => event === 'asked-over-http').length).toBe(7);
  // Of many at once two have a connection.
  const many = await Promise.all(
    Array.from({ length: 12 }, () => relay.ask('/failed', { headers: { authorization } })),
  );
  expect(new Set(many.map(({ code }) => code))).toEqual(new Set([200, 429]));

  // Another one that has no token: nobody acts by it.
  const openPort = await freePort();
  const open = new Relayed(openPort);
  await bed.launch({ http: { port: openPort } });
  await until(() => open.isReady(), { withinMs: 15_000, what: 'a standby that is ready' });
  for (const path of ['/failed/retry', '/failed/discard', '/pause', '/resume', '/jobs/1/cancel']) {
    const { code, body } = await open.ask(path, post(retry));
    expect([path, code]).toEqual([path, 403]);
    expect(JSON.parse(body)).toMatchObject({ fix: expect.stringContaining('http.token') as string });
  }
  expect((await relay.ready())?.state).toBe('FLOWING');
  expect((await relay.ask('/')).code).toBe(200);
  const { headers } = await open.ask('/');
  expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
  const policy = String(headers['content-security-policy']);
  expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+';/);
  expect(policy).toContain("connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
  expect(policy).not.toMatch(/unsafe/);
});
