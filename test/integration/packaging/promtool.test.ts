import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { command } from '../../stack/command.ts';
import { promtool } from '../../stack/promtool.ts';
import { removeDirectory, temporaryDirectory } from '../../stack/ward.ts';

const DOCKER = join(import.meta.dirname, '../../../docker');
const tool = await promtool();
const why = 'missing' in tool ? ` (${tool.missing})` : '';

function run(...args: string[]): Promise<string> {
  if ('missing' in tool) throw new Error(tool.missing);
  return command(tool.program, args, { cwd: join(DOCKER, 'prometheus') });
}

describe.skipIf('missing' in tool)(`promtool${why}`, () => {
  test('takes the rules, and they fire when they are to', async () => {
    expect(await run('check', 'rules', 'alerts.yaml')).toContain('SUCCESS: 11 rules found');
    expect(await run('check', 'config', '--syntax-only', 'prometheus.yaml')).toContain('SUCCESS');
    expect(await run('test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
  });

  test('can read every query of the dashboard', async () => {
    const { panels } = z
      .object({ panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })).default([]) })) })
      .parse(JSON.parse(readFileSync(join(DOCKER, 'grafana/cdc-relay.json'), 'utf8')));
    const rules = panels
      .flatMap(({ targets }) => targets)
      .map(({ expr }, i) => ({ record: `query_${i}`, expr: expr.replaceAll('$__rate_interval', '1m') }));
    expect(rules.length).toBeGreaterThan(60);
    const directory = await temporaryDirectory();
    try {
      const file = join(directory, 'queries.yaml');
      await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
      expect(await run('check', 'rules', file)).toContain(`SUCCESS: ${rules.length} rules found`);
    } finally {
      await removeDirectory(directory);
    }
  });
});
