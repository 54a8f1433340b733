import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BATCH_HEADER_BYTES, sealBatch } from '../../../src/encoding/record-batch.ts';
import { recordBound, recordLength, writeRecord } from '../../../src/encoding/record.ts';
import { RelayError } from '../../../src/model/fault.ts';
import { emptyRow, Form, type OutboxRow } from '../../../src/model/row.ts';
import { Double, encodeJson, fromPlain, Int, type Json, jsonText, type JsonMap, Opaque } from './binary-json.ts';
import { decodeBatch, type DecodedRecord } from './kafkajs-protocol.ts';
import { date, decimal } from './opaque-values.ts';
import { fill, type Headers, headersOf, stated, toRow, valueOf } from './rows.ts';

test('any row is what kafkajs decodes', async () => {
  await fc.assert(
    fc.asyncProperty(stated, fc.nat(2000), async (row, offset) => {
      const record = await decode(encode(toRow(row), offset, row.timestampDeltaMs), offset);
      expect(record.attributes).toBe(0);
      expect(record.timestamp).toBe(String(row.timestampDeltaMs));
      expect(record.offset).toBe(String(offset));
      expect(record.key).toEqual(row.key);
      expect(record.value).toEqual(valueOf(row));
      expect(record.headers).toEqual(headersOf(row));
    }),
    { numRuns: 700 },
  );
});

test('any row: exact length, bound, and no more room touched than there is', () => {
  fc.assert(
    fc.property(stated, fc.nat(2000), ({ timestampDeltaMs, ...rest }, offset) => {
      const row = toRow({ timestampDeltaMs, ...rest });
      const length = recordLength(row, offset, timestampDeltaMs);
      const bound = recordBound(row);
      expect(length).toBeLessThanOrEqual(bound);
      const roomy = Buffer.alloc(5 + bound + 5, 0xee);
      expect(writeRecord(roomy, 5, row, offset, timestampDeltaMs)).toBe(5 + length);
      expect(roomy.subarray(5 + bound)).toEqual(Buffer.alloc(5, 0xee));
      const tight = Buffer.alloc(5 + length, 0xee);
      expect(writeRecord(tight, 5, row, offset, timestampDeltaMs)).toBe(5 + length);
      expect(tight.subarray(5)).toEqual(roomy.subarray(5, 5 + length));
    }),
    { numRuns: 1000 },
  );
});

describe('headers', () => {
  test('only the id where the row has nothing else', async () => {
    expect(await headers({})).toEqual([['id', Buffer.from('a5a5a5a5-a5a5-a5a5-a5a5-a5a5a5a5a5a5')]]);
  });

  test('the event type behind the id, then the members as they are stored', async () => {
    const own = {
      zz: 'text',
      a: 'é"\n',
      n: null,
      i: 1,
      f: 1.5,
      l: [1, 'x'],
      o: { k: null },
      traceparent: '00-4bf9-01',
    };
    for (const text of [false, true]) {
      const stored = fromPlain(own);
      expect(await headers({ eventType: 'OrderCreated', own: text ? jsonText(stored) : stored })).toEqual([
        ['id', Buffer.from('a5a5a5a5-a5a5-a5a5-a5a5-a5a5a5a5a5a5')],
        ['event-type', Buffer.from('OrderCreated')],
        ['a', Buffer.from('é"\n')],
        ['f', Buffer.from('1.5')],
        ['i', Buffer.from('1')],
        ['l', Buffer.from('[1, "x"]')],
        ['n', null],
        ['o', Buffer.from('{"k": null}')],
        ['zz', Buffer.from('text')],
        ['traceparent', Buffer.from('00-4bf9-01')],
      ]);
    }
  });

  test('D2: what only the server types is the same from binary JSON and from its text', async () => {
    const own: JsonMap = new Map<string, Json>([
      ['one', new Double(1)],
      ['amount', decimal(false, '1', '0')],
      ['day', date({ year: 2026, month: 1, day: 2 })],
      ['blob', new Opaque(15, Buffer.alloc(60), `"base64:type15:${'A'.repeat(76)}\\nAAAA"`)],
      ['big', new Int(18446744073709551615n)],
    ]);
    const fromBinary = await headers({ own });
    expect(fromBinary).toEqual(await headers({ own: jsonText(own) }));
    expect(Object.fromEntries(fromBinary.map(([key, value]) => [key, value?.toString()]))).toMatchObject({
      one: '1.0',
      amount: '1.0',
      day: '2026-01-02',
      blob: `base64:type15:${'A'.repeat(76)}\nAAAA`,
      big: '18446744073709551615',
    });
  });

  test('text that no server printed: white space, escapes, repeated names', async () => {
    const text =
      ' {\t"a" :"\\u0041\\/\\ud834\\udd1e\\u00e9\\b" ,\n"b": [ 1 ,{"c" : -1.5E+3}], "a":true,"\\u0062":"\\ud834x" }\r\n';
    expect((await headers({ own: text })).slice(1)).toEqual([
      ['a', Buffer.from('A/𝄞é\b')],
      ['b', Buffer.from('[ 1 ,{"c" : -1.5E+3}]')],
      ['a', Buffer.from('true')],
      ['b', Buffer.from('\ufffdx')],
    ]);
  });

  test('members whose lengths take more bytes than their punctuation', () => {
    const members = Array.from({ length: 100 }, (_, i) => `"${String(i).padStart(64, 'k')}":[${'1'.repeat(8190)}]`);
    const row = rowWith({ own: `{${members.join()}}` });
    const bound = recordBound(row);
    expect(recordLength(row, 0, 0)).toBeGreaterThan(row.headers.end - row.headers.start);
    expect(recordLength(row, 0, 0)).toBeLessThanOrEqual(bound);
  });

  test('none from an empty object and from JSON null', async () => {
    for (const own of [new Map<string, Json>(), null, '{}', ' { } ', ' null ']) {
      expect(await headers({ own })).toHaveLength(1);
    }
    const row = rowWith({});
    fill(row.headers, Form.Json, Buffer.alloc(0));
    expect(recordLength(row, 0, 0)).toBe(recordLength(rowWith({}), 0, 0));
  });

  test.for(['[]', '"SECRET"', '1', 'true', '{"a":1} x', '{"SECRET"', '{"a":1,}', '{a:1}', "{'a':1}", '', '{"a":01}'])(
    'text that is no object: %s',
    (text) => {
      expectRefused(rowWith({ own: text }));
    },
  );

  test.for(['{"a":"\n"}', '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":1.}', '{"a":+1}', '{"a":nul}', '{"a":"x', '{"a" 1}'])(
    'text that is no JSON: %j',
    (text) => {
      expectRefused(rowWith({ own: text }));
    },
  );

  test('binary JSON that is no object, or corrupt', () => {
    for (const own of [[], 'SECRET', new Int(1), true] as Json[]) expectRefused(rowWith({ own }));
    const row = rowWith({ own: fromPlain({ a: 'SECRET' }) });
    for (let end = row.headers.start + 1; end < row.headers.end; end++) {
      row.headers.end = end;
      expectRefused(row);
    }
  });

  test('nested deeper than any server allows', () => {
    expectRefused(rowWith({ own: `{"a":${'['.repeat(100_000)}` }));
  });

  test('any damage to text: refused like JSON.parse does, or the same members', async () => {
    const texts = fc.tuple(
      stated,
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(...Array.from('{}[]",:\\u0n 1-e'))), { maxLength: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(texts, async ([{ headers: own }, changes]) => {
        const bytes = Buffer.from(jsonText(own ?? new Map<string, Json>()));
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte.charCodeAt(0);
        const parsed = parse(bytes.toString());
        if (parsed === undefined || parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) {
          if (parsed !== null) expectRefused(rowWith({ own: bytes }));
        } else {
          const names = (await headers({ own: bytes })).slice(1).map(([key]) => key);
          expect(new Set(names)).toEqual(new Set(namesIn(bytes.toString()).map((key) => key.toWellFormed())));
        }
      }),
      { numRuns: 700 },
    );
  });
});

describe('what cannot be a record', () => {
  test('no idempotency key', () => {
    const row = rowWith({});
    row.idempotencyKey.form = Form.Null;
    expectRefused(row);
  });

  test('a BINARY key of more than 16 bytes', () => {
    const row = rowWith({});
    fill(row.idempotencyKey, Form.Uuid, Buffer.alloc(17));
    expectRefused(row);
  });

  test('a corrupt payload', () => {
    const row = rowWith({});
    fill(row.value, Form.Json, encodeJson('SECRET').subarray(0, 4));
    expectRefused(row);
  });
});

interface Asked {
  eventType?: string;
  own?: Json | string | Buffer;
}

/** Text and bytes as a text column, everything else as binary JSON. */
function rowWith({ eventType, own }: Asked): OutboxRow {
  const row = emptyRow();
  fill(row.idempotencyKey, Form.Uuid, Buffer.alloc(16, 0xa5));
  if (eventType !== undefined) fill(row.eventType, Form.Text, Buffer.from(eventType));
  if (typeof own === 'string' || Buffer.isBuffer(own)) fill(row.headers, Form.Text, Buffer.from(own));
  else if (own !== undefined) fill(row.headers, Form.Json, encodeJson(own));
  return row;
}

/** The headers in their order, which kafkajs's own decoder gives up for an object. */
async function headers(asked: Asked): Promise<Headers> {
  const bytes = encode(rowWith(asked), 0, 0);
  await decode(bytes, 0);
  let at = 0;
  const varint = (): number => {
    let n = 0;
    for (let shift = 0; ; shift += 7) {
      n |= (bytes[at] & 0x7f) << shift;
      if (bytes[at++] < 0x80) return (n >>> 1) ^ -(n & 1);
    }
  };
  const field = (): Buffer | null => {
    const length = varint();
    if (length < 0) return null;
    at += length;
    return bytes.subarray(at - length, at);
  };
  expect(varint()).toBe(bytes.length - at);
  at += 3;
  expect([field(), field()]).toEqual([null, null]);
  const found = Array.from({ length: varint() }, () => [field()!.toString(), field()] as [string, Buffer | null]);
  expect(at).toBe(bytes.length);
  return found;
}

function encode(row: OutboxRow, offsetDelta: number, timestampDeltaMs: number): Buffer {
  const out = Buffer.alloc(recordBound(row));
  return out.subarray(0, writeRecord(out, 0, row, offsetDelta, timestampDeltaMs));
}

async function decode(record: Buffer, offset: number): Promise<DecodedRecord> {
  const batch = Buffer.concat([Buffer.alloc(BATCH_HEADER_BYTES), record]);
  sealBatch(batch, batch.length, {
    records: 1,
    baseTimestampMs: 0,
    maxTimestampMs: 0,
    producer: { id: -1n, epoch: -1 },
    baseSequence: -1,
    compression: 'none',
  });
  const { records } = await decodeBatch(batch);
  expect(records).toHaveLength(1);
  expect(records[0].offset).toBe(String(offset));
  return records[0];
}

let texts = 0;

/**
 * The names in the text of an object. V8 (Node 24.21) takes a name with an escape for another that it has met in the
 * same place of an object before: none has begun with this name yet.
 */
function namesIn(object: string): string[] {
  const rest = object.slice(object.indexOf('{') + 1);
  const first = `text ${texts++}`;
  const text = `{"${first}": 0${/^\s*\}/.test(rest) ? '' : ','}${rest}`;
  return Object.keys(JSON.parse(text) as object).filter((name) => name !== first);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Refused with a fault of the row that shows nothing of its content. */
function expectRefused(row: OutboxRow): void {
  const out = Buffer.alloc(recordBound(row));
  for (const attempt of [() => writeRecord(out, 0, row, 0, 0), () => recordLength(row, 0, 0)]) {
    const thrown = caught(attempt);
    expect(thrown).toBeInstanceOf(RelayError);
    const { fault, message } = thrown as RelayError;
    expect(fault).toMatchObject({ code: 'ROW_ENCODING', disposition: 'reject' });
    expect(message).not.toContain('SECRET');
  }
}

function caught(attempt: () => unknown): unknown {
  try {
    attempt();
  } catch (error) {
    return error;
  }
  return null;
}
