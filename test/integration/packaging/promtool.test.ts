import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command } from '../../stack/command.ts';
import { promtool } from '../../stack/promtool.ts';

const PROMETHEUS = join(import.meta.dirname, '../../../docker/prometheus');
const tool = await promtool();
const title = 'missing' in tool ? ` (${tool.missing})` : '';

test.skipIf('missing' in tool)(`Prometheus takes the rules, and they fire when they are to${title}`, async () => {
  if ('missing' in tool) return;
  const run = (...args: string[]): Promise<string> => command(tool.program, args, { cwd: PROMETHEUS });
  expect(await run('check', 'rules', 'alerts.yaml')).toContain('SUCCESS: 11 rules found');
  expect(await run('check', 'config', '--syntax-only', 'prometheus.yaml')).toContain('SUCCESS');
  expect(await run('test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
});
