import { expect, inject, test } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { checkServer } from '../../../src/check/check-mysql.ts';
import { checkSchema } from '../../../src/check/check.ts';
import { Session } from '../../../src/store/session.ts';
import { type Finished, runProgram } from '../../e2e/built-cli.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startMysql } from '../../stack/stack.ts';
import { CheckBed, SILENT, told } from './check-bed.ts';

/** From its sources: what is tested here is not the build. */
const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url));

test('J1 J2 exit codes, text and JSON; a MySQL by its version', async () => {
  await using bed = await CheckBed.open({ mysql: inject('mysql'), brokers: inject('brokers') });
  const cwd = mkdtempSync(`${tmpdir()}/cdc-relay-check-`);
  const { host, port, user, password } = inject('mysql');
  const cli = (args: readonly string[], over: NodeJS.ProcessEnv = {}): Promise<Finished> => {
    const environment = {
      CDC_RELAY_NAME: 'check-test',
      CDC_RELAY_START: 'head',
      CDC_RELAY_MYSQL_URL: `mysql://${user}:${encodeURIComponent(password)}@${host}:${port}/${bed.database}`,
      CDC_RELAY_KAFKA_BROKERS: inject('brokers').join(','),
      CDC_RELAY_OUTBOXES: JSON.stringify([{ table: 'outbox' }]),
      ...over,
    };
    return runProgram(process.execPath, [CLI, 'check', ...args], { cwd, environment });
  };
  try {
    const good = await cli([]);
    expect(good.stdout).toMatch(/\ncheck-test on \S+ \((?:8|9)\.\d+\.\S+\) as root@/);
    expect(good.stdout).toMatch(/^cdc-relay check: 0 errors, .*\(--all shows the good ones\)\n/);
    expect(good.stdout).toMatch(/\ncanary OK: a row written at \d\d:\d\d:\d\d\.\d{3} came by after [\d.]+ ms\n$/);
    expect([good.code, good.stderr]).toEqual([0, '']);

    await bed.sql('DROP INDEX waiting ON outbox');
    const found = await cli(['--json']);
    const report = checkSchema.parse(JSON.parse(found.stdout));
    expect(report.findings[0]).toMatchObject({ severity: 'error', check: 'waiting-index' });
    expect([found.code, report.counts.errors, found.stderr]).toEqual([1, 1, '']);
    const all = await cli(['--all']);
    expect(all.stdout).toContain(`\ngood   ${bed.database}.outbox is an InnoDB table\n`);

    const away = await cli([], { CDC_RELAY_KAFKA_BROKERS: '127.0.0.1:1' });
    expect([away.code, away.stdout]).toEqual([
      1,
      expect.stringContaining('\nERROR  Kafka cannot be used at 127.0.0.1:1'),
    ]);
    const secret = 'S3cret/p%ss';
    const refused = await cli(['--json', '--log-level', 'debug'], {
      CDC_RELAY_MYSQL_URL: `mysql://nobody:${encodeURIComponent(secret)}@${host}:${port}/${bed.database}`,
    });
    expect(refused.code).toBe(1);
    expect((await cli([], { CDC_RELAY_MYSQL_URL: 'nonsense' })).code).toBe(2);
    expect(checkSchema.parse(JSON.parse(refused.stdout)).server).toBeNull();
    for (const form of [secret, encodeURIComponent(secret)]) {
      expect(refused.stdout + refused.stderr).not.toContain(form);
    }
  } finally {
    rmSync(cwd, { recursive: true });
  }
}, 60_000);

test('I6 run refuses where rights are missing, and says which: an empty table is something else', async () => {
  await using bed = await CheckBed.open({ mysql: inject('mysql'), brokers: inject('brokers') });
  const run = async (...grants: readonly string[]) => {
    const { user, password } = await bed.user('REPLICATION SLAVE, REPLICATION CLIENT ON *.*', ...grants);
    const { host, port } = inject('mysql');
    const environment = {
      CDC_RELAY_NAME: 'check-test',
      CDC_RELAY_START: 'head',
      CDC_RELAY_MYSQL_URL: `mysql://${user}:${password}@${host}:${port}/${bed.database}`,
      CDC_RELAY_KAFKA_BROKERS: inject('brokers').join(','),
      CDC_RELAY_OUTBOXES: JSON.stringify([{ table: 'outbox' }]),
      CDC_RELAY_HTTP_PORT: '0',
    };
    const { code, stderr } = await runProgram(process.execPath, [CLI, 'run'], { cwd: tmpdir(), environment });
    return {
      code,
      text: stderr
        .split('\n')
        .filter((line) => !line.startsWith('{'))
        .join('\n'),
    };
  };
  const own = ['offsets', 'parked', 'jobs'].map((name) => `ALL ON ${bed.database}.cdc_relay_${name}`);
  const cases = [
    { said: await run(), where: 'taking the next epoch' },
    { said: await run(...own), where: `looking at \`${bed.database}\`.\`outbox\`` },
  ];
  for (const { said, where } of cases) {
    expect(said.code).toBe(4);
    expect(said.text).toContain(`error: ${where}: ER_TABLEACCESS_DENIED_ERROR (MYSQL_ACCESS_DENIED)`);
    expect(said.text).toMatch(/fix {6}.*cdc-relay check/);
  }
}, 60_000);

test('J2 run says at its start what makes the tail impossible, once, and goes on', async () => {
  await using mysql = await startMysql({ flags: ['--binlog-format=MIXED', '--basedir=/rdsdbbin/mysql/'] });
  await using bed = await RelayBed.open({ mysql });
  const relay = await bed.start();
  const { topic } = bed.servers;
  await bed.sql('INSERT INTO outbox (topic, aggregate_id) VALUES (?, ?)', [topic('orders'), '1']);
  await bed.retired();
  const line = await relay.waitFor('check-finding');
  expect(line).toMatchObject({ level: 'warn', check: 'binlog-format', fact: 'binlog_format is MIXED' });
  await bed.sql('INSERT INTO outbox (topic, aggregate_id) VALUES (?, ?)', [topic('orders'), '1']);
  await bed.retired();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  expect(relay.lines().filter(({ event }) => event === 'check-finding')).toHaveLength(1);
  // A replica that logs what it replicates is none that stops the tail.
  await using checked = await CheckBed.open({ mysql, brokers: inject('brokers') });
  await checked.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'db0', SOURCE_PORT = 3306");
  const session = await Session.open(checked.settings().mysql, SILENT);
  const { findings } = await checkServer(session, checked.settings());
  session.destroy();
  expect(told({ findings }, ['replica', 'binlog-expiry'])).toEqual([
    'unknown binlog-expiry: for how long binlogs are kept is not in the variables of Amazon RDS and Aurora',
    'warning replica: the server is a replica of db0:3306',
  ]);
});
