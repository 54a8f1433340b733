import { expect, it } from 'vitest';
import { writeFingerprint } from '../../../src/delivery/fingerprint.ts';
import { Form } from '../../../src/model/row.ts';

function of(bytes: Buffer, form: Form): string {
  const out = new Uint32Array(2);
  writeFingerprint(out, 0, { form, buffer: bytes, start: 0, end: bytes.length });
  return out.join(' ');
}

it('a UUID is the same with and without the trailing zeros that the log cuts', () => {
  const whole = Buffer.from('0190a1b2c3d4e5f60718293a4b000000', 'hex');
  expect(of(whole.subarray(0, 13), Form.Uuid)).toBe(of(whole, Form.Uuid));
  expect(of(whole.subarray(0, 13), Form.Text)).not.toBe(of(whole, Form.Text));
});

it('keys that differ little differ, in both halves', () => {
  const low = new Set<string>();
  const high = new Set<string>();
  for (let n = 0; n < 20_000; n++) {
    const key = Buffer.alloc(16, 0xa5);
    key.writeUInt32BE(n, 12);
    const [first, second] = of(key, Form.Uuid).split(' ');
    low.add(first);
    high.add(second);
  }
  expect(low.size).toBeGreaterThan(19_990);
  expect(high.size).toBeGreaterThan(19_990);
});
