import { fileURLToPath } from 'node:url';
import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';

const CONFIRM = fileURLToPath(new URL('../../../src/commands/confirm.ts', import.meta.url));
/** As a command ends: with the exit code of a problem, else 0 or 1. */
const ASK = `import(${JSON.stringify(CONFIRM)}).then(({ confirmed }) => confirmed({}, "begin")).then(
  (may) => process.exit(may ? 0 : 1),
  (error) => process.exit(error.problem?.exitCode ?? 70),
)`;

/** Asks on a terminal of its own and answers with these keys. */
async function answered(keys: string): Promise<number | null> {
  const command = `'${process.execPath}' -e '${ASK}'`;
  const asking = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], { timeout: 60_000 });
  let shown = '';
  asking.stdout.on('data', (chunk: Buffer) => {
    const before = shown.includes('[y/N]');
    shown += String(chunk);
    if (!before && shown.includes('[y/N]')) asking.stdin.write(keys);
  });
  return new Promise((resolve) => {
    asking.once('close', resolve);
  });
}

test.for([
  ['y\r', 0],
  ['\r', 1],
  ['\x04', 1],
  ['\x03', 130],
] as const)('a question that is answered with %j ends with %i', async ([keys, code]) => {
  expect(await answered(keys)).toBe(code);
});
