import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
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
function write(password: string): void {
  writeFileSync(join(directory, 'new'), `${password}\n`);
  renameSync(join(directory, 'new'), join(directory, 'password'));
}

async function killAll(): Promise<void> {
  const connections = await bed.sql('SELECT id FROM information_schema.processlist WHERE user = ?', [user.user]);
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
