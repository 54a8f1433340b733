import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Secrets } from '../../../src/config/secret-files.ts';
import { fault } from '../../../src/model/fault.ts';
import type { LogFormat, LogLevel } from '../../../src/model/log.ts';
import { createLog } from '../../../src/observability/log.ts';

async function logTo(
  lines: string[],
  options: { level?: LogLevel; format?: LogFormat; secrets?: string[]; isTerminal?: boolean } = {},
) {
  return createLog(
    { level: options.level ?? 'info', format: options.format ?? 'json' },
    {
      secrets: new Secrets(options.secrets ?? []),
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

test('the level goes to debug and back, children too, and the line that says so is told whatever the level is', async () => {
  const lines: string[] = [];
  const log = await logTo(lines, { level: 'error' });
  const child = log.child({ lane: 'orders-3' });
  const events = () => lines.splice(0).map((line) => (JSON.parse(line) as { event: string; to?: string }).event);
  child.info('not-shown');
  log.toggleDebug();
  child.debug('shown');
  expect(events()).toEqual(['log-level', 'shown']);
  log.toggleDebug();
  child.warn('not-shown');
  child.error('shown');
  expect(lines[0]).toContain('"to":"error"');
  expect(events()).toEqual(['log-level', 'shown']);
});

test('K1: every form of a secret, and one that is read later', async () => {
  const lines: string[] = [];
  let text = 'first secret "quoted"';
  const secrets = new Secrets([]);
  const file = secrets.file('mysql.passwordFile', text, () => ({ ok: true, value: text }));
  const log = await createLog(
    { level: 'info', format: 'json' },
    { secrets, isTerminal: false, color: false, destination: { write: (line) => void lines.push(line) } },
  );
  for (const secret of [text, 'the next "secret"']) {
    text = secret;
    expect(file.read()).toBe(secret);
    const base64 = Buffer.from(secret).toString('base64');
    for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret), base64]) {
      log.info('told', { note: `before ${form} after` });
      expect((JSON.parse(lines.pop()!) as { note: string }).note).toMatch(/^before "?\[redacted\]"?=* after$/);
    }
  }
});

test('what others wrote cannot move the cursor, change the colors or the direction of a terminal', async () => {
  const lines: string[] = [];
  const log = await logTo(lines, { format: 'pretty' });
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\u001b[2J', '\u009b', '\u202e', '\r', '\u0007'),
      (text, bad) => {
        log.warn('told', { note: text + bad, err: new Error(bad + text) });
        expect(lines.pop()).not.toMatch(/(?![\n\t])\p{Cc}|\p{Cf}|[\u2028\u2029]/u);
      },
    ),
  );
});
