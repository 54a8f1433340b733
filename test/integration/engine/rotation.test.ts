import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { ask } from '../http/http-client.ts';
import { freePort } from '../../stack/ports.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import type { CliProcess } from '../../stack/relay-process.ts';
import { createRelayUser, type RelayUser } from '../../stack/relay-user.ts';
import { removeDirectory, temporaryDirectory } from '../../stack/ward.ts';

let bed: RelayBed;
let user: RelayUser;
let directory: string;
let relay: CliProcess;
beforeAll(async () => {
  directory = await temporaryDirectory();
  bed = await RelayBed.open();
  user = await createRelayUser((text) => bed.sql(text), bed.servers.database, 'the first password');
  write(user.password);
  const environment = { CDC_RELAY_MYSQL_PASSWORD_FILE: join(directory, 'password') };
  relay = await bed.launch({ mysql: { user: user.user, password: '' } }, { env: environment });
  await relay.waitFor('binlog-streaming');
});
afterAll(async () => {
  await bed.sql(`DROP USER ${user.user}`);
  await bed[Symbol.asyncDispose]();
  await removeDirectory(directory);
});

/** As secrets are mounted: under another name first. */
function write(value: string, file = 'password'): void {
  writeFileSync(join(directory, 'new'), `${value}\n`);
  renameSync(join(directory, 'new'), join(directory, file));
}

async function killAll(name = user.user): Promise<void> {
  const connections = await bed.sql('SELECT id FROM information_schema.processlist WHERE user = ?', [name]);
  for (const { id } of connections) await bed.sql(`KILL ${String(id)}`).catch(() => undefined);
}

const change = (password: string) => bed.sql(`ALTER USER '${user.user}'@'%' IDENTIFIED BY '${password}'`);
const insert = (count: number) => insertRows(bed.servers.pool, { topic: bed.topics[0], count });
const seen = (event: string): number => relay.lines().filter((line) => line.event === event).length;

test('a password that is changed with its file takes effect without a restart', async () => {
  await insert(20);
  await bed.retired();
  await change('the second password');
  write('the second password');
  await killAll();
  await insert(20);
  await bed.retired();
  expect(seen('secret-read-anew')).toBe(1);
});

test('the server first, its file later: tried again until the file has it', async () => {
  const before = relay.lines().length;
  await change('the third password');
  await killAll();
  await relay.waitFor('relay-waits', { after: before, fields: { code: 'MYSQL_ACCESS_DENIED' } });
  await insert(20);
  write('the third password');
  await bed.retired();
});

test('while the file is not there the last value is used, and that is told once', async () => {
  rmSync(join(directory, 'password'));
  const before = relay.lines().length;
  await killAll();
  await relay.waitFor('tail-flowing', { after: before });
  await insert(20);
  await bed.retired();
  expect(seen('secret-unreadable')).toBe(1);
});

test('none was lost, none is told in the log, and it was one process all the time', async () => {
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 80, lost: 0, reordered: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  expect(relay.stderr()).not.toMatch(/(first|second|third)(%20| )password/);
});

test('a URL with another user in it, and another token for HTTP, take effect without a restart', async () => {
  const { host, port: mysqlPort } = bed.servers.mysql;
  const url = ({ user: name, password }: RelayUser) =>
    `mysql://${name}:${encodeURIComponent(password)}@${host}:${mysqlPort}/${bed.servers.database}`;
  write(url({ user: user.user, password: 'the third password' }), 'url');
  write('the first of the tokens', 'token');
  const port = await freePort();
  const http = { port, tokenFile: join(directory, 'token') };
  const second = await bed.launch({ http }, { env: { CDC_RELAY_MYSQL_URL_FILE: join(directory, 'url') } });
  await second.waitFor('binlog-streaming');
  const asked = async (token: string) =>
    (await ask(port, '/status', { headers: { authorization: `Bearer ${token}` } })).code;
  expect(await asked('the first of the tokens')).toBe(200);

  const other = await createRelayUser((text) => bed.sql(text), bed.servers.database, 'the fourth password');
  try {
    write(url(other), 'url');
    await bed.sql(`ALTER USER ${user.user} ACCOUNT LOCK`);
    await killAll();
    await insert(20);
    await bed.retired();
    write('the second of the tokens', 'token');
    expect([await asked('the first of the tokens'), await asked('the second of the tokens')]).toEqual([401, 200]);
    expect((await second.kill('SIGTERM')).code).toBe(0);
    expect(second.stderr()).not.toMatch(/(third|fourth)(%20| )password|of the tokens/);
  } finally {
    await bed.sql(`DROP USER ${other.user}`);
  }
});
