import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './given-config.ts';
import { instructions, last, of, stages } from './last-stage.ts';

test('stages on one base; the last one has no development dependency, no source and no secret', () => {
  expect(new Set(stages.map((stage) => stage.split(/\s/)[1]))).toEqual(new Set(['node:24-bookworm-slim']));
  expect(of('COPY').every((line) => line.includes('--from='))).toBe(true);
  const libraries = stages.find((stage) => stage.includes('AS libraries'))!;
  expect(libraries).toContain('npm ci --omit=dev --ignore-scripts');
  // Not ARG, not ENV: those are in the image's history.
  expect(instructions.filter((line) => line.startsWith('ARG'))).toEqual([]);
  expect(instructions.join('\n')).not.toMatch(/https?:\/\/(?!127\.0\.0\.1)/);
});

test('a user by number that is not root, after everything is written', () => {
  expect(of('USER')).toEqual(['USER 10001:10001']);
  const user = last.indexOf('USER 10001:10001');
  for (const line of [...of('COPY'), ...of('RUN'), ...of('WORKDIR')]) expect(last.indexOf(line)).toBeLessThan(user);
});

test('the relay is the first process and gets its signals; health is whether it is alive', () => {
  const list = (word: string): string[] => JSON.parse(of(word)[0].slice(word.length)) as string[];
  expect([list('ENTRYPOINT'), list('CMD')]).toEqual([['cdc-relay'], ['run']]);
  expect(of('HEALTHCHECK')[0]).toContain('/livez');
  expect(of('LABEL')[0]).toMatch(/image\.title=.*image\.description=.*image\.licenses="Apache-2\.0"/);
});

test('.dockerignore: what the Dockerfile copies, and nothing else', () => {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
  const patterns = lines.filter((line) => line !== '' && !line.startsWith('#'));
  expect(patterns[0]).toBe('*');
  const kept = patterns.slice(1).map((line) => line.slice(1));
  for (const name of kept) expect(existsSync(join(ROOT, name)), name).toBe(true);
  const copied = instructions
    .filter((line) => line.startsWith('COPY') && !line.includes('--from'))
    .flatMap((line) => line.split(/\s+/).slice(1, -1))
    .filter((name) => name !== '.');
  expect(kept).toEqual(expect.arrayContaining(copied));
  for (const name of ['test', 'docker', 'node_modules', '.git', 'config', 'docs']) expect(kept).not.toContain(name);
});
