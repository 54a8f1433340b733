import { expect, test } from 'vitest';
import { isFinal } from '../../../src/delivery/row-faults.ts';
import { verdictOf } from '../../../src/kafka/fault-table.ts';

test.each([
  'ROW_ENCODING',
  'ROW_NO_TOPIC',
  'KAFKA_MESSAGE_TOO_LARGE',
  'KAFKA_RECORD_LIST_TOO_LARGE',
  'KAFKA_REQUEST_TOO_LARGE',
  'KAFKA_INVALID_TIMESTAMP',
  'KAFKA_INVALID_RECORD',
] as const)('%s is about the row, now and later', (code) => expect(isFinal(code)).toBe(true));

test('other refusals count as attempts', () => {
  for (const errorCode of [2, 44, 25, 999]) {
    const { name, disposition } = verdictOf(errorCode);
    expect([disposition, isFinal(`KAFKA_${name}`)], name).toEqual(['reject', false]);
  }
});

test('F4: nothing but a refusal is final', () => {
  for (let errorCode = -1; errorCode < 134; errorCode++) {
    const { name, disposition } = verdictOf(errorCode);
    if (isFinal(`KAFKA_${name}`)) expect(disposition, name).toBe('reject');
  }
});
