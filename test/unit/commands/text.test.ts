import { expect, test } from 'vitest';
import { listText, showText } from '../../../src/commands/failed-report.ts';
import type { ReportedRow } from '../../../src/http/failed-view.ts';
import { ageOption, sinceOption } from '../../../src/commands/option-values.ts';
import { timeRange } from '../../../src/commands/time-range.ts';
import { isBackwards } from '../../../src/store/people-ids.ts';
import type { Session } from '../../../src/store/session.ts';
import { escapedText, topOf } from '../../../src/commands/text.ts';

test.each([
  ['plain', 'plain', 'plain'],
  ['ü€😀', 'ü€😀', String.raw`\xfc\u{20ac}\u{1f600}`],
  ['a\u001b[2J\r\n\t', String.raw`a\x1b[2J\x0d\x0a\x09`, String.raw`a\x1b[2J\x0d\x0a\x09`],
  // Right-to-left override, zero-width space, C1 control sequence introducer.
  ['\u202e\u200b\u009b', String.raw`\u{202e}\u{200b}\x9b`, String.raw`\u{202e}\u{200b}\x9b`],
  ['a\\x1b', String.raw`a\\x1b`, String.raw`a\\x1b`],
])('%j on a terminal and in a pipe', (text, onTerminal, inPipe) => {
  expect([escapedText(text, false), escapedText(text, true)]).toEqual([onTerminal, inPipe]);
});

test.each([
  ['a\nb\nc', 80, 3, 'a\nb\nc'],
  ['a\nb\nc', 80, 2, 'a\n…'],
  ['a\nb\nc', 80, 1, '…'],
  // A line that is broken takes several rows.
  [`${'x'.repeat(25)}\nb\nc`, 10, 5, `${'x'.repeat(25)}\nb\nc`],
  [`${'x'.repeat(25)}\nb\nc`, 10, 4, `${'x'.repeat(25)}\n…`],
  [`a\n${'x'.repeat(25)}`, 10, 3, 'a\n…'],
])('%j on %i columns and %i rows: %j', (text, columns, rows, top) => {
  expect(topOf(text, columns, rows)).toBe(top);
});

test('ages and times', () => {
  expect(ageOption({ olderThan: '7d' }, 'olderThan', '--older-than')).toBe(7 * 86_400_000);
  expect(ageOption({}, 'olderThan', '--older-than')).toBeNull();
  expect(sinceOption({ since: '90s' }, 'since')).toEqual({ agoMs: 90_000 });
  expect(sinceOption({ since: '2026-11-29T22:00Z' }, 'since')).toEqual({ atMs: Date.UTC(2026, 10, 29, 22) });
  expect(sinceOption({ since: '2026-11-29' }, 'since')).toEqual({ atMs: Date.UTC(2026, 10, 29) });
  const none = ['2026-13-01', '2026-02-30', '2026-11-31T00:00Z', '2026-11-29T22:00', '2026-11-29T22:00+01:00'];
  for (const since of ['7', '-1d', '1w', ...none, 'now', '', '999999999d']) {
    expect(() => sinceOption({ since }, 'since'), since).toThrow('--since: expected a number with s, m, h or d');
  }
});

test('ages count from the time of the server; a range without anything in it is refused', async () => {
  const nowMs = Date.UTC(2026, 10, 29, 22);
  const server = { rows: () => Promise.resolve([{ now_there: String(nowMs / 1000) }]) } as unknown as Session;
  expect(await timeRange(server, {})).toEqual({ sinceMs: null, untilMs: null });
  expect(await timeRange(server, { since: '2h', until: '1h' })).toEqual({
    sinceMs: nowMs - 7_200_000,
    untilMs: nowMs - 3_600_000,
  });
  const backwards = [
    { since: '1h', until: '2h' },
    { since: '2026-11-29', until: '2026-11-28' },
    { since: '1h', until: '2026-11-29T21:00Z' },
  ];
  for (const options of backwards) await expect(timeRange(server, options)).rejects.toThrow('--until is not behind');
  expect(isBackwards('integer', 18446744073709551615n, 9007199254740993n)).toBe(true);
  expect(isBackwards('integer', 7n, 7n)).toBe(false);
  expect(isBackwards('bytes', 'ff', '01ff')).toBe(true);
});

const row: ReportedRow = {
  outbox: 'app.outbox',
  id: '81',
  status: 'failed',
  topic: 'orders',
  key: 'order-1',
  keyHex: '6f726465722d31',
  eventType: null,
  attempts: 1,
  error: `MESSAGE_TOO_LARGE: ${'x'.repeat(100)}`,
  createdAt: '2026-11-30T00:00:00.000000Z',
  availableAt: '2026-11-30T00:00:00.000000Z',
  ageMs: 61_000,
};

test('a list fits the terminal, and is whole in a pipe', () => {
  const narrow = listText([row], false, 60).split('\n');
  expect(narrow[0]).toBe('1 failed row of app.outbox');
  for (const line of narrow.slice(1, 3)) expect(line.length).toBeLessThanOrEqual(60);
  expect(listText([row], false, undefined)).toContain('x'.repeat(100));
  expect(listText([row], true, undefined)).toMatch(/^the last 1 failed rows of app.outbox\n/);
  const two = listText([row, { ...row, outbox: 'app.other' }], false, undefined);
  expect(two).toMatch(/^2 failed rows\noutbox +id/);
  expect(two).toContain('failed show 81 --outbox app.outbox');
});

test('a row without payload and headers', () => {
  const text = showText({ version: 1, row, payload: null, headers: { bytes: 2_000, sha256: 'ab' } });
  expect(text.split('\n')[0]).toBe('FAILED  row 81');
  expect(text).toContain('created    2026-11-30T00:00:00.000000Z (1 m 1 s ago)');
  expect(text).toContain('payload    NULL');
  expect(text).toContain('headers    2,000 bytes, SHA-256 ab (not shown)');
});
