import { expect, test } from 'vitest';
import { type RowId, shownId } from '../../../src/model/row-ids.ts';
import { type IdKind, parseId } from '../../../src/store/people-ids.ts';

const hex = (text: string) => Buffer.from(text).toString('hex');

test.each<[IdKind, RowId, string]>([
  ['integer', 18_446_744_073_709_551_615n, '18446744073709551615'],
  ['text', hex('1ef12d4e-ed32-11f1-b1b9-02fc00000001'), '1ef12d4e-ed32-11f1-b1b9-02fc00000001'],
  ['text', hex('of 16 characters'), 'of 16 characters'],
  ['bytes', '1ef12d4eed3211f1b1b902fc00000001', '1ef12d4e-ed32-11f1-b1b9-02fc00000001'],
  ['bytes', 'c3bc00', 'c3bc00'],
])('a key of type %s, %s, is shown as a command takes it', (kind, id, text) => {
  expect(shownId(id)).toBe(text);
  expect(parseId(kind, text)).toBe(id);
});

test('control characters are not shown as they are', () => {
  expect(shownId(hex('a\u001b[31m'))).toBe('611b5b33316d');
  expect(shownId(hex('a\u007f'))).toBe('617f');
});
