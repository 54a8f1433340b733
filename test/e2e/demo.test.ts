import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../stack/until.ts';

const DEMO = fileURLToPath(new URL('../demo/demo.ts', import.meta.url));
const WITHIN_MS = 120_000;
/** Inherited by everything that a demo starts: by it they are found again. */
const MARK = 'CDC_RELAY_DEMO_TEST';

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

describe('npm run demo, in a pipe', () => {
  it(
    'shows kills and an outage and ends with a good audit, all within plain lines',
    { timeout: WITHIN_MS },
    async () => {
      const demo = start(['--seconds', '6']);
      expect(await demo.exit, demo.stderr()).toBe(0);
      const lines = demo.stdout().trimEnd().split('\n');
      const [, committed, delivered] =
        /^audit: committed=(\d+) delivered=(\d+) lost=0 reordered=0 altered=0 duplicates=\d+$/.exec(lines.at(-1)!) ??
        [];
      expect(Number(committed)).toBeGreaterThan(6 * 300);
      expect(delivered).toBe(committed);
      expect(lines.filter((line) => line.includes('killed the relay'))).toHaveLength(2);
      expect(lines.filter((line) => line.includes('stopped Kafka'))).toHaveLength(1);
      const seconds = lines.flatMap((line) => /^(\d+:\d\d) {2}committed/.exec(line)?.[1] ?? []);
      expect(new Set(seconds).size).toBe(seconds.length);
      expect(demo.stdout()).toMatch(/^[\n -~]*$/);
      await nothingLeft(demo.mark);
    },
  );

  it('ends at once and leaves nothing running when it is interrupted', { timeout: WITHIN_MS }, async () => {
    const demo = start([]);
    await until(() => demo.stdout().includes('delivered'), { withinMs: 60_000, what: 'a line of figures' });
    demo.child.kill('SIGINT');
    expect(await demo.exit, demo.stderr()).toBe(130);
    await nothingLeft(demo.mark);
  });
});

function start(args: string[]) {
  const mark = randomUUID();
  const child = spawn(process.execPath, [DEMO, ...args], {
    env: { ...process.env, [MARK]: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  return { child, mark, exit, stdout: () => stdout, stderr: () => stderr };
}

/** Servers and relays end with the demo; those that had to be killed by its warden, a moment later. */
async function nothingLeft(mark: string): Promise<void> {
  await until(() => marked(mark).length === 0, { withinMs: 20_000, what: `nothing left of demo ${mark}` });
}

/** Linux tells the environment of processes; elsewhere nothing is found. */
function marked(mark: string): string[] {
  const pids = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${MARK}=${mark}`);
    } catch {
      return false; // it has ended
    }
  });
}
