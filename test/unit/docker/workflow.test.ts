import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { ROOT } from './given-config.ts';

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const workflow = z
  .object({
    on: z.object({ push: z.unknown(), pull_request: z.unknown() }),
    permissions: z.strictObject({ contents: z.literal('read') }),
    jobs: z.record(
      z.string(),
      z.strictObject({
        needs: z.string().optional(),
        'runs-on': z.string(),
        'timeout-minutes': z.int(),
        strategy: z
          .strictObject({ 'fail-fast': z.boolean(), matrix: z.strictObject({ image: z.array(z.string()) }) })
          .optional(),
        env: z.record(z.string(), z.string()).optional(),
        steps: z.array(
          z.union([z.strictObject({ uses: z.string(), with: z.unknown() }), z.strictObject({ run: z.string() })]),
        ),
      }),
    ),
  })
  .parse(parse(read('.github/workflows/ci.yaml')));
const jobs = Object.entries(workflow.jobs).map(([name, job]) => ({ name, ...job }));

test('all that must pass runs first, and then each line of servers that is supported', () => {
  expect(workflow.jobs['all'].steps).toContainEqual({ run: '.ci/run' });
  expect(existsSync(join(ROOT, '.ci/run'))).toBe(true);
  expect(workflow.jobs['mysql'].strategy?.matrix.image).toEqual(['mysql:8.0', 'mysql:8.4', 'mysql:9.7']);
  expect(workflow.jobs['mariadb'].strategy?.matrix.image).toEqual(['mariadb:10.6', 'mariadb:10.11', 'mariadb:11.4']);
});

test.each(jobs)('$name: pinned actions, scripts that there are, variables that the tests know', ({ steps, env }) => {
  const { scripts } = z.object({ scripts: z.record(z.string(), z.string()) }).parse(JSON.parse(read('package.json')));
  const known = [read('test/stack/docker-database.ts'), read('test/stack/full.ts')].join('\n');
  for (const step of steps) {
    if ('uses' in step) expect(step.uses).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
    else if (step.run.startsWith('npm run ')) expect(Object.keys(scripts)).toContain(step.run.split(' ')[2]);
  }
  for (const name of Object.keys(env ?? {})) expect(known).toContain(`'${name}'`);
});
