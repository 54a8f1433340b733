import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { UUID_TEXT_BYTES, writeUuid } from '../../../src/encoding/uuid.ts';

test('sixteen bytes as text', () => {
  for (let i = 0; i < 20; i++) {
    const uuid = randomUUID();
    expect(text(Buffer.from(uuid.replaceAll('-', ''), 'hex'))).toBe(uuid);
  }
});

test('D1: trailing zeros that the binary log has cut are there again', () => {
  expect(text(Buffer.from('1f0727b72cc96910920cb12f2d1006', 'hex'))).toBe('1f0727b7-2cc9-6910-920c-b12f2d100600');
  expect(text(Buffer.of(2))).toBe('02000000-0000-0000-0000-000000000000');
  expect(text(Buffer.alloc(0))).toBe('00000000-0000-0000-0000-000000000000');
});

function text(bytes: Buffer): string {
  const source = Buffer.concat([Buffer.of(0xff), bytes, Buffer.alloc(20, 0xff)]);
  const out = Buffer.alloc(50, 0xee);
  const end = writeUuid(out, 5, source, 1, 1 + bytes.length);
  expect(end).toBe(5 + UUID_TEXT_BYTES);
  expect(out[end]).toBe(0xee);
  return out.toString('latin1', 5, end);
}
