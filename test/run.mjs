import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath, URL } from 'node:url';

/**
 * What stands behind `npm test`, `npm run demo` and the like. Plain JavaScript for any Node from 20 on, with nothing
 * installed: it installs the packages, and among them the Node that everything else runs on.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BIN = join(ROOT, 'node_modules', '.bin');
const OUTPUT = join(ROOT, 'test-output');
const REPORT = join(OUTPUT, 'vitest.json');
const KINDS = ['unit', 'integration', 'mariadb', 'fault', 'e2e'];
const PROGRAMS = {
  demo: 'test/demo/demo.ts',
  bench: 'test/bench/bench.ts',
  stack: 'test/stack/dev.ts',
};

const env = { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}` };
const [command = 'test', ...args] = process.argv.slice(2);
process.exitCode = await main();

async function main() {
  if (command in PROGRAMS) return runProgram(PROGRAMS[command], args);
  if (command === 'test') return runEverything(args);
  if (KINDS.includes(command)) return runKind(command, args);
  process.stderr.write(
    `run.mjs: unknown command ${command}; one of test, ${[...KINDS, ...Object.keys(PROGRAMS)].join(', ')}\n`,
  );
  return 2;
}

/** Static checks and every kind of test; the last line counts them. `--full` runs the long tests at full length. */
async function runEverything(options) {
  if (!(await install())) return 1;
  if (options.includes('--full')) env.CDC_RELAY_TEST_FULL = '1';
  const counts = { passed: 0, failed: 0 };
  const failures = [];
  const check = async (script) => {
    const passed = await stepAside(`npm run ${script}`, 'npm', ['run', '--silent', script]);
    counts[passed ? 'passed' : 'failed']++;
    if (!passed) failures.push(script);
  };
  await check('build');
  // They take long, and go on beside the first tests.
  const checks = Promise.all([check('typecheck'), check('lint')]);
  if (!failures.includes('build')) {
    const tests = await vitest(KINDS.flatMap((kind) => ['--project', kind]));
    counts.passed += tests.passed;
    counts.failed += tests.failed;
    failures.push(...tests.failures);
  }
  await checks;
  for (const failure of failures) say(`failed: ${failure}`);
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
  return counts.failed === 0 ? 0 : 1;
}

/** One kind of test; what follows goes to vitest: `npm run test:unit -- proxy`. */
async function runKind(kind, given) {
  if (!(await install())) return 1;
  const options = kind === 'fault' ? randomFaults(given) : given;
  if (options === null) return 2;
  if (kind === 'mariadb') env.CDC_RELAY_TEST_FULL = '1'; // else it is only what `npm test` has of it
  if (kind !== 'unit' && !(await step('npm run build', 'npm', ['run', '--silent', 'build']))) return 1;
  const { passed, failed } = await vitest(['--project', kind, ...options]);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

/** `--seed N --minutes M`, either or both: the random faults alone, so long and by this seed. */
function randomFaults(options) {
  const rest = [...options];
  for (const [name, variable] of [
    ['--seed', 'CDC_RELAY_TEST_SEED'],
    ['--minutes', 'CDC_RELAY_TEST_MINUTES'],
  ]) {
    const at = rest.indexOf(name);
    if (at < 0) continue;
    const [, value] = rest.splice(at, 2);
    if (!(Number(value) >= 0)) {
      say(`${name} needs a number`);
      return null;
    }
    env[variable] = value;
  }
  return rest.length === options.length ? rest : ['test/fault/random-faults.test.ts', ...rest];
}

async function runProgram(file, options) {
  if (!(await install())) return 1;
  if (command !== 'stack' && !(await step('npm run build', 'npm', ['run', '--silent', 'build']))) return 1;
  return (await run('node', [file, ...options], 'inherit')) ?? 1;
}

/** Runs vitest and reads its report. What failed without being a test (a file that cannot be loaded) counts as one. */
async function vitest(options) {
  mkdirSync(OUTPUT, { recursive: true });
  rmSync(REPORT, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`];
  const passedAsAWhole = await step('vitest', 'vitest', [
    'run',
    '--config',
    'test/vitest.config.ts',
    ...reporters,
    ...options,
  ]);
  const counts = { passed: 0, failed: 0, failures: [] };
  if (existsSync(REPORT)) {
    for (const file of JSON.parse(readFileSync(REPORT, 'utf8')).testResults) {
      const failed = file.assertionResults.filter(({ status }) => status === 'failed');
      counts.passed += file.assertionResults.filter(({ status }) => status === 'passed').length;
      counts.failed += failed.length;
      const name = file.name.replace(ROOT, '');
      counts.failures.push(...failed.map(({ fullName }) => `${name}: ${fullName}`));
      if (file.status === 'failed' && failed.length === 0) {
        counts.failed++;
        counts.failures.push(name);
      }
    }
  }
  if (!passedAsAWhole && counts.failed === 0) {
    counts.failed++;
    counts.failures.push('vitest itself, or an error outside the tests');
  }
  return counts;
}

/** Installs the packages unless what is installed is what the lock file says. */
async function install() {
  if (installed()) return true;
  return step('npm ci (packages missing or not those of package-lock.json)', 'npm', ['ci', '--loglevel=error']);
}

function installed() {
  const has = join(ROOT, 'node_modules', '.package-lock.json');
  if (!existsSync(has) || !existsSync(join(BIN, 'node'))) return false;
  const wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages;
  const present = JSON.parse(readFileSync(has, 'utf8')).packages;
  return Object.entries(wanted).every(
    // Optional packages are those of other platforms.
    ([path, { version, optional }]) => path === '' || optional === true || present[path]?.version === version,
  );
}

/** Runs one step, saying when it starts and how long it took. Its own output goes to stderr with ours. */
async function step(name, program, options, output = process.stderr) {
  say(name);
  const startedAt = performance.now();
  const passed = (await run(program, options, ['ignore', output, output])) === 0;
  say(`${name}: ${passed ? 'done' : 'failed'} after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return passed;
}

/** The same for what runs beside something else: its output comes in one piece, when it has ended. */
async function stepAside(name, program, options) {
  mkdirSync(OUTPUT, { recursive: true });
  const file = join(OUTPUT, `${name.replaceAll(' ', '-')}.log`);
  const output = openSync(file, 'w');
  const passed = await step(name, program, options, output);
  closeSync(output);
  process.stderr.write(readFileSync(file));
  return passed;
}

/** The exit code; null after a signal. */
function run(program, options, stdio) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, { cwd: ROOT, env, stdio });
    // A terminal sends Ctrl-C to the child as well: it ends by itself, in order, and we after it.
    const wait = () => undefined;
    const end = () => child.kill('SIGTERM');
    process.on('SIGINT', wait).on('SIGTERM', end);
    child.on('error', reject);
    child.on('close', (code) => {
      process.off('SIGINT', wait).off('SIGTERM', end);
      resolve(code);
    });
  });
}

function say(text) {
  process.stderr.write(`run: ${text}\n`);
}
