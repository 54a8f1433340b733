import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Finished, runProgram } from './built-cli.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What a package is made of; packed from a copy, because packing builds, and other tests run the build of the tree. */
const PARTS = ['package.json', 'tsconfig.json', 'src', 'migrations', 'config', 'LICENSE', 'README.md', 'CHANGELOG.md'];

let directory: string;
let installed: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cdc-relay-pack-'));
  const source = join(directory, 'source');
  for (const part of PARTS) if (existsSync(ROOT + part)) cpSync(ROOT + part, join(source, part), { recursive: true });
  symlinkSync(`${ROOT}node_modules`, join(source, 'node_modules'));
  await npm(['pack', '--pack-destination', directory], source);
  const tarball = readdirSync(directory).find((name) => name.endsWith('.tgz'))!;

  installed = join(directory, 'installed');
  mkdirSync(installed);
  writeFileSync(join(installed, 'package.json'), '{}');
  await npm(['install', '--prefer-offline', '--no-audit', '--no-fund', join(directory, tarball)], installed);
}, 240_000);

afterAll(() => {
  rmSync(directory, { recursive: true });
});

async function npm(args: readonly string[], cwd: string): Promise<void> {
  // npm finds its registry, proxy and authorities by the machine's environment.
  const { code, stderr } = await runProgram('npm', args, { cwd, environment: process.env, withinMs: 200_000 });
  if (code !== 0) throw new Error(`npm ${args[0]}: ${stderr}`);
}

function cdcRelay(...args: readonly string[]): Promise<Finished> {
  return runProgram(join(installed, 'node_modules/.bin/cdc-relay'), args, { cwd: installed });
}

test('the installed command says its version', async () => {
  expect(await cdcRelay('--version')).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
  });
});

test('the installed command finds its migrations, with the example that came with it', async () => {
  const example = join(installed, 'node_modules/cdc-relay/config/cdc-relay.example.yaml');
  writeFileSync(join(installed, 'password'), 'hunter2hunter2');
  const flags = ['--set', 'mysql.passwordFile=password'];
  const { code, stdout, stderr } = await cdcRelay('migrate', '--print', '--config', example, ...flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('CREATE TABLE IF NOT EXISTS `app`.`outbox`');
});

test('every command of the installed package can load its libraries', async () => {
  const environment = {
    CDC_RELAY_NAME: 'orders',
    CDC_RELAY_MYSQL_URL: 'mysql://relay@127.0.0.1:1/app',
    CDC_RELAY_KAFKA_BROKERS: '127.0.0.1:1',
    CDC_RELAY_OUTBOXES: '[{table: app.outbox}]',
  };
  const program = join(installed, 'node_modules/.bin/cdc-relay');
  const { code, stderr } = await runProgram(program, ['migrate'], { cwd: installed, environment });
  expect(stderr).toContain('MYSQL_UNREACHABLE');
  expect(code).toBe(3);
});

test('the package holds what it runs on, and no sources or tests', () => {
  const root = join(installed, 'node_modules/cdc-relay');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(root, name)).isFile(),
  );
  const tops = new Set(files.map((name) => name.split('/')[0]));
  for (const part of ['dist', 'migrations', 'config', 'LICENSE', 'CHANGELOG.md']) expect(tops).toContain(part);
  expect(files).toContain('dist/page/index.html');
  expect(files.filter((name) => /^(src|test|node_modules)\//.test(name) || /(?<!\.d)\.ts$/.test(name))).toEqual([]);
});
