import { expect, test } from 'vitest';
import { fault } from '../../../src/model/fault.ts';
import type { LogFormat } from '../../../src/model/log.ts';
import { createLog } from '../../../src/observability/log.ts';

async function logTo(lines: string[], options: { format?: LogFormat; secrets?: string[]; isTerminal?: boolean } = {}) {
  return createLog(
    { level: 'info', format: options.format ?? 'json' },
    {
      secrets: options.secrets ?? [],
      isTerminal: options.isTerminal ?? false,
      color: false,
      destination: { write: (line) => void lines.push(line) },
    },
  );
}

test('a line has level, UTC time, fields and the event name', async () => {
  const lines: string[] = [];
  const log = await logTo(lines);
  log.child({ lane: 'orders-3' }).warn('lane-stalled', { stalledMs: 1200, rows: 12n });
  log.debug('not-shown');
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0]) as Record<string, unknown>;
  expect(line).toMatchObject({ level: 'warn', lane: 'orders-3', stalledMs: 1200, rows: '12', event: 'lane-stalled' });
  expect(line['time']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test('K1: a secret never shows, by field name, in a library message, URL-encoded, or in a cause', async () => {
  const lines: string[] = [];
  const log = await logTo(lines, { secrets: ['p@ss/word'] });
  const cause = Object.assign(new Error('auth of mysql://u:p%40ss%2Fword@h failed'), { sql: 'SET x = p@ss/word' });
  log.child({ note: 'p@ss/word' }).error('connect-failed', {
    password: 'p@ss/word',
    nested: { clientSecret: 'anything', list: ['p@ss/word'] },
    err: fault('MYSQL_ACCESS_DENIED', 'halt', 'refused p@ss/word', cause),
  });
  expect(lines[0]).toContain('MYSQL_ACCESS_DENIED');
  for (const form of ['p@ss/word', 'p%40ss', 'anything', 'SET x']) expect(lines[0]).not.toContain(form);
});

test('an unexpected error keeps its stack, a classified fault does not carry one', async () => {
  const lines: string[] = [];
  const log = await logTo(lines);
  log.error('bug', { err: new TypeError('x is undefined') });
  log.error('fault', { err: fault('KAFKA_TIMEOUT', 'retry', 'no answer', new Error('socket')) });
  expect(lines[0]).toContain('log.test.ts');
  expect(lines[1]).not.toContain('log.test.ts');
  expect(JSON.parse(lines[1])).toMatchObject({
    err: { code: 'KAFKA_TIMEOUT', disposition: 'retry', detail: 'no answer', cause: { message: 'socket' } },
  });
});

test('auto is pretty on a terminal and JSON in a pipe', async () => {
  const piped: string[] = [];
  (await logTo(piped, { format: 'auto' })).info('relay-started', { relay: 'orders' });
  expect(() => JSON.parse(piped[0]) as unknown).not.toThrow();
  const shown: string[] = [];
  (await logTo(shown, { format: 'auto', isTerminal: true })).info('relay-started', { relay: 'orders' });
  expect(shown[0]).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: relay-started \{"relay":"orders"\}\n$/);
});
