import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonTextBound, jsonTextLength, writeJson } from '../../../src/encoding/json-text.ts';
import { type Fault, RelayError } from '../../../src/model/fault.ts';
import { Double, encodeJson, fromPlain, Int, type Json, jsonText, Opaque } from './binary-json.ts';
import { documents, doubles } from './documents.ts';
import { blob, date, datetime, decimal, time } from './opaque-values.ts';

const GUARD = 0xee;

describe('the text of a document', () => {
  test.for([
    ['null', null],
    ['true', true],
    ['false', false],
    ['"x"', 'x'],
    ['""', ''],
    ['{}', new Map()],
    ['[]', []],
    ['0', new Int(0)],
    ['-32768', new Int(-32768)],
    ['-2147483648', new Int(-(2 ** 31))],
    ['{"a": [1, {"b": null}], "bb": "ü"}', fromPlain({ bb: 'ü', a: [1, { b: null }] })],
    ['{"b": 1, "c": 2, "aa": 3}', fromPlain({ c: 2, aa: 3, b: 1 })],
    [
      '{"1": 2, "10": 1, "__proto__": 3}',
      new Map([10, 1].map((n, i) => [`${n}`, new Int(i + 1)])).set('__proto__', new Int(3)),
    ],
  ] as [string, Json][])('%s', ([text, json]) => {
    expect(written(encodeJson(json))).toBe(text);
    expect(written(encodeJson(json, true))).toBe(text);
  });

  test('a value of no bytes is null', () => {
    expect(written(Buffer.alloc(0))).toBe('null');
  });

  test('unsigned integers of 16 and 32 bits', () => {
    expect(written(Buffer.from([6, 0xff, 0xff]))).toBe('65535');
    expect(written(Buffer.from([8, 0xff, 0xff, 0xff, 0xff]))).toBe('4294967295');
    expect(written(Buffer.from([3, 1, 0, 0, 0, 13, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff]))).toBe('[4294967295]');
  });

  test('D3: big numbers keep their digits', () => {
    const json = new Map<string, Json>([
      ['TemplateId', new Int(7088992364139642880n)],
      ['u', new Int(18446744073709551615n)],
      ['min', new Int(-9223372036854775808n)],
      ['value', new Int(2147483648)],
      ['safe', new Int(9007199254740993n)],
    ]);
    expect(written(encodeJson(json))).toBe(
      '{"u": 18446744073709551615, "min": -9223372036854775808, "safe": 9007199254740993, "value": 2147483648, "TemplateId": 7088992364139642880}',
    );
  });

  test('D4: small opaque values', () => {
    const json = new Map<string, Json>([
      ['amt', decimal(false, '1', '99')],
      ['d', date({ year: 2026, month: 1, day: 2 })],
      ['t', time(true, { hours: 1, minutes: 0, seconds: 0, micros: 0 })],
      ['at', datetime({ year: 2026, month: 1, day: 2 }, { hours: 3, minutes: 4, seconds: 5, micros: 60 })],
      ['long', time(true, { hours: 838, minutes: 59, seconds: 59, micros: 0 })],
      ['b', blob(16, Buffer.of(5))],
      ['half', decimal(true, '', '500')],
      ['zero', decimal(false, '0', '')],
    ]);
    expect(written(encodeJson(json))).toBe(
      '{"b": "base64:type16:BQ==", "d": "2026-01-02", "t": "-01:00:00.000000", "at": "2026-01-02 03:04:05.000060", ' +
        '"amt": 1.99, "half": -0.500, "long": "-838:59:59.000000", "zero": 0}',
    );
  });

  test('D5: keys and strings of every kind', () => {
    const source = { '': 0, 键: '值', q: 'a"b\\n\n\u0001', e: [], n: null, o: {} };
    const text = written(encodeJson(fromPlain(source)));
    expect(text).toBe('{"": 0, "e": [], "n": null, "o": {}, "q": "a\\"b\\\\n\\n\\u0001", "键": "值"}');
    expect(JSON.parse(text)).toEqual(source);
  });

  test('D5: every control character by the escape that the server uses', () => {
    const all = String.fromCharCode(...Array.from({ length: 0x20 }, (_, i) => i), 0x22, 0x2f, 0x5c, 0x7f);
    expect(written(encodeJson(all))).toBe(
      '"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f' +
        '\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f' +
        '\\"/\\\\\u007f"',
    );
  });

  test('D5: documents beyond 64 KiB', () => {
    const source = {
      list: Array.from({ length: 9000 }, (_, i) => ({ i, text: `value ${i * 70_000}` })),
      long: 'é'.repeat(70_000),
    };
    const document = encodeJson(fromPlain(source));
    expect(document[0]).toBe(1);
    expect(JSON.parse(written(document))).toEqual(source);
  });

  test('binary data in lines of 76 characters', () => {
    expect(written(encodeJson(blob(15, Buffer.alloc(58))))).toBe(`"base64:type15:${'A'.repeat(76)}\\nAA=="`);
    expect(written(encodeJson(blob(15, Buffer.alloc(57))))).toBe(`"base64:type15:${'A'.repeat(76)}"`);
  });

  test('the server nests 100 deep', () => {
    const nested = (levels: number): Json => {
      let json: Json = [];
      for (let i = 1; i < levels; i++) json = [json];
      return json;
    };
    expect(written(encodeJson(nested(100)))).toBe('['.repeat(100) + ']'.repeat(100));
    expect(() => written(encodeJson(nested(101)))).toThrow(RelayError);
  });

  test('any document, in the small and in the large format', () => {
    fc.assert(
      fc.property(documents, fc.boolean(), (json, large) => {
        expect(written(encodeJson(json, large))).toBe(jsonText(json));
      }),
      { numRuns: 1500 },
    );
  });
});

describe('doubles', () => {
  /** What MySQL 9.7 shows. */
  test.for([
    [1, '1.0'],
    [-0, '-0.0'],
    [1e20, '1e20'],
    [1e15, '1e15'],
    [1e14, '100000000000000.0'],
    [999999999999999, '999999999999999.0'],
    [1234567890123456, '1.234567890123456e15'],
    [1234567890123456.75, '1234567890123456.8'],
    [1e-7, '0.0000001'],
    [1e-15, '0.000000000000001'],
    [1e-16, '1e-16'],
    [-1.5e-15, '-0.0000000000000015'],
    [1.7976931348623157e308, '1.7976931348623157e308'],
    [5e-324, '5e-324'],
    [2.2250738585072014e-308, '2.2250738585072014e-308'],
    [123456789012345680, '1.2345678901234568e17'],
    [0.1 + 0.2, '0.30000000000000004'],
    [1e-6 / 3, '0.0000003333333333333333'],
    [19.99, '19.99'],
    [1234567890.12, '1234567890.12'],
    [Infinity, '0.0'],
  ] as [number, string][])('%d is %s', ([value, text]) => {
    expect(written(encodeJson(new Double(value)))).toBe(text);
  });

  test('any double: shortest digits, and it reads back', () => {
    fc.assert(
      fc.property(doubles, (value) => {
        const text = written(encodeJson(new Double(value)));
        expect(text).toBe(jsonText(new Double(value)));
        expect(Object.is(Number(text), value)).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('length', () => {
  test('no document is longer than its bound', () => {
    expect(jsonTextBound(0)).toBe('null'.length);
    const worst = encodeJson('\u0001'.repeat(1000));
    expect(jsonTextLength(worst, 0, worst.length)).toBeGreaterThan(5.9 * worst.length);
    for (let type = 0; type < 256; type++) {
      const empty = encodeJson(new Opaque(type, Buffer.alloc(0), ''));
      if ([7, 10, 11, 12, 246].includes(type)) continue;
      expect(jsonTextLength(empty, 0, empty.length)).toBeLessThanOrEqual(jsonTextBound(empty.length));
    }
  });
});

describe('corrupt documents', () => {
  test.for([
    ['unknown type', [0x0d]],
    ['no value', [12]],
    ['a string beyond the end', [12, 5, 0x61]],
    ['a length without an end', [12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]],
    ['unknown literal', [4, 3]],
    ['more elements than bytes', [3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
    ['a container that contains itself', [2, 1, 0, 7, 0, 2, 0, 0]],
    ['a date of one byte', [15, 10, 1, 0]],
    ['a decimal of the wrong size', [15, 246, 3, 9, 2, 0x80]],
    ['a decimal with more fraction than digits', [15, 246, 3, 1, 2, 0x80]],
    ['a decimal without digits', [15, 246, 2, 0, 0]],
  ] as [string, number[]][])('%s', ([, bytes]) => {
    expectCorrupt(() => written(Buffer.from(bytes)));
  });

  test('shared parts do not multiply the text', () => {
    // Each level is an array of 20 entries that all point to the same next level: 160,000 elements from 257 bytes.
    const levels = 4;
    const levelBytes = 4 + 20 * 3;
    const document = Buffer.alloc(1 + levels * levelBytes);
    document[0] = 2;
    for (let level = 0; level < levels; level++) {
      const at = 1 + level * levelBytes;
      document.writeUInt16LE(20, at);
      document.writeUInt16LE((levels - level) * levelBytes, at + 2);
      for (let i = 0; i < 20; i++) {
        document[at + 4 + 3 * i] = level === levels - 1 ? 4 : 2;
        document.writeUInt16LE(level === levels - 1 ? 0 : levelBytes, at + 5 + 3 * i);
      }
    }
    expectCorrupt(() => written(document));
  });

  test('any damage: a fault or a bounded text, and nothing read or written outside', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 6 });
    fc.assert(
      fc.property(documents, fc.boolean(), damage, fc.nat(), (json, large, changes, cut) => {
        const document = encodeJson(json, large);
        for (const [at, byte] of changes) document[at % document.length] = byte;
        const damaged = document.subarray(0, cut % 3 === 0 ? cut % (document.length + 1) : document.length);
        expectSameAnywhere(damaged);
      }),
      { numRuns: 3000 },
    );
  });

  test('any bytes at all', () => {
    fc.assert(
      fc.property(fc.constantFrom(0, 1, 2, 3, 12, 15), fc.uint8Array({ maxLength: 120 }), (type, bytes) => {
        expectSameAnywhere(Buffer.concat([Buffer.of(type), bytes]));
      }),
      { numRuns: 3000 },
    );
  });
});

/** Writes into exactly the bound's room, checks the guards around it and the dry run, and gives the text. */
function written(document: Buffer, around = 0x00): string {
  const source = Buffer.concat([Buffer.alloc(9, around), document, Buffer.alloc(70, around)]);
  const end = 9 + document.length;
  const bound = jsonTextBound(document.length);
  const out = Buffer.alloc(bound + 20, GUARD);
  try {
    const written = writeJson(source, 9, end, out, 10);
    expect(written).toBeLessThanOrEqual(10 + bound);
    expect(jsonTextLength(source, 9, end)).toBe(written - 10);
    return out.toString('utf8', 10, written);
  } catch (error) {
    if (error instanceof RelayError) expect(() => jsonTextLength(source, 9, end)).toThrow(RelayError);
    throw error;
  } finally {
    expect(out.subarray(0, 10)).toEqual(Buffer.alloc(10, GUARD));
    expect(out.subarray(10 + bound)).toEqual(Buffer.alloc(10, GUARD));
  }
}

/** Whatever lies around the document, the outcome is the same. */
function expectSameAnywhere(document: Buffer): void {
  const outcome = (around: number): string => {
    try {
      return written(document, around);
    } catch (error) {
      if (error instanceof RelayError && error.fault.code === 'ROW_ENCODING') return error.fault.detail;
      throw error;
    }
  };
  expect(outcome(0xff)).toBe(outcome(0x00));
}

function expectCorrupt(run: () => unknown): void {
  const fault: Partial<Fault> = { code: 'ROW_ENCODING', disposition: 'reject' };
  expect(run).toThrow(expect.objectContaining({ fault: expect.objectContaining(fault) as unknown }));
}
