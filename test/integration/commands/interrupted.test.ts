import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const source = (name: string) =>
  JSON.stringify(fileURLToPath(new URL(`../../../src/commands/${name}`, import.meta.url)));
/** The command line with one command, which draws a bar and has no end. */
const RUN = `Promise.all([import(${source('command.ts')}), import(${source('progress.ts')})]).then(
  async ([{ runCommandLine }, { Progress }]) => {
    const load = async () => async ({ note }) => {
      new Progress(note, false).update(0.5, 1);
      setInterval(() => undefined, 1_000);
      return new Promise(() => undefined);
    };
    const command = { name: "work", summary: "s", examples: [], whenInterrupted: "interrupted: run it again", load };
    process.exit(await runCommandLine("1", [command], {}, ["node", "cdc-relay", "work"]));
  },
)`;

test('Ctrl-C beneath a bar gives the terminal back, cursor and wrapped lines, and says how to go on', async () => {
  const command = `'${process.execPath}' -e '${RUN}'`;
  const env = {
    ...process.env,
    CDC_RELAY_NAME: 'bar',
    CDC_RELAY_MYSQL_URL: 'mysql://u:p@127.0.0.1:1/app',
    CDC_RELAY_KAFKA_BROKERS: '127.0.0.1:1',
    CDC_RELAY_OUTBOXES: '[{table: app.outbox}]',
  };
  const working = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], { env, timeout: 60_000 });
  let shown = '';
  working.stdout.on('data', (chunk: Buffer) => {
    const before = shown.includes('50 %');
    shown += String(chunk);
    if (!before && shown.includes('50 %')) working.stdin.write('\x03');
  });
  const code = await new Promise((resolve) => working.once('close', resolve));
  // As it is given back: wrapped lines on.
  expect(shown.slice(shown.lastIndexOf('\u001b[?7'))).toMatch(/^\S+\?7h[^]*interrupted: run it again\s*$/);
  expect(code).toBe(130);
});
