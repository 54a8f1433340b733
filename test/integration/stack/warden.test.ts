import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { until } from '../../stack/until.ts';

const started = z.object({ pids: z.array(z.number()), directory: z.string() });

test('a runner that is killed leaves no server and no directory, not even a frozen one', async () => {
  const script = fileURLToPath(new URL('orphan.ts', import.meta.url));
  const runner = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(createInterface(runner.stdout), 'line')) as [string];
    const { pids, directory } = started.parse(JSON.parse(line));
    expect([...pids.map(runs), existsSync(directory)]).toEqual([true, true, true]);
    runner.kill('SIGKILL');
    const gone = () => !pids.some(runs) && !existsSync(directory);
    await until(gone, { withinMs: 20_000, what: 'the end of the servers' });
  } finally {
    runner.kill('SIGKILL');
  }
});

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
