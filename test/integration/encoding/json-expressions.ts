import fc from 'fast-check';

/**
 * SQL expressions that make JSON documents, over everything that the server's own functions and casts put into one.
 * Numbers are typed by their spelling: 1.5 is a DECIMAL, 1.5e0 a DOUBLE.
 */
const digits = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom('0', '1', '2', '5', '9'), minLength, maxLength });
const sign = fc.constantFrom('', '-');
const between = (min: number, max: number, width = 2): fc.Arbitrary<string> =>
  fc.integer({ min, max }).map((n) => String(n).padStart(width, '0'));

const integers = fc.oneof(
  fc.integer({ min: -130, max: 130 }).map(String),
  fc
    .tuple(sign, fc.integer({ min: 14, max: 63 }), fc.integer({ min: -2, max: 1 }))
    .map(([minus, power, plus]) => `${minus}${2n ** BigInt(power) - 1n + BigInt(plus)}`),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => `CAST('${n}' AS SIGNED)`),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((n) => `CAST('${n}' AS UNSIGNED)`),
  fc.constantFrom('65535', '65536', '4294967295', '4294967296').map((n) => `CAST(${n} AS UNSIGNED)`),
);

const doubles = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.tuple(fc.maxSafeInteger(), fc.integer({ min: 0, max: 22 })).map(([n, scale]) => n / 10 ** scale),
    fc.tuple(fc.integer({ min: -9999, max: 9999 }), fc.integer({ min: -25, max: 25 })).map(([n, e]) => n * 10 ** e),
    fc.tuple(fc.integer({ min: -1074, max: 1023 }), sign).map(([e, minus]) => (minus === '' ? 1 : -1) * 2 ** e),
  )
  .map((n) => (Object.is(n, -0) ? '-0e0' : n.toExponential().replace('+', '')));

const decimals = fc
  .tuple(sign, digits(0, 35), digits(0, 30))
  .filter(([, whole, fraction]) => whole + fraction !== '')
  .map(([minus, whole, fraction]) => {
    const precision = whole.length + fraction.length;
    return `CAST('${minus}${whole}.${fraction}' AS DECIMAL(${precision},${fraction.length}))`;
  });

const clock = fc.tuple(between(0, 59), between(0, 59), between(0, 999_999, 6)).map(([m, s, us]) => `${m}:${s}.${us}`);
const day = fc.tuple(between(1, 9999, 4), between(1, 12), between(1, 28)).map((parts) => parts.join('-'));
const times = fc.oneof(
  day.map((text) => `CAST('${text}' AS DATE)`),
  fc.tuple(sign, between(0, 837), clock).map(([minus, h, rest]) => `CAST('${minus}${h}:${rest}' AS TIME(6))`),
  fc.tuple(day, between(0, 23), clock).map(([date, h, rest]) => `CAST('${date} ${h}:${rest}' AS DATETIME(6))`),
  fc.tuple(day, between(0, 23), clock).map(([date, h, rest]) => `CAST('${date} ${h}:${rest}' AS DATETIME)`),
);

const characters = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('"', '\\', '\n', '\t', '\b', '\f', '\r', '\0', '\u001f', '\u007f', '/', 'é', '𝄞'),
  }),
  fc.tuple(fc.string({ minLength: 1, maxLength: 9 }), fc.integer({ min: 1, max: 60 })).map(([s, n]) => s.repeat(n)),
);
const hex = (text: string): string => (text === '' ? "_utf8mb4''" : `_utf8mb4 X'${Buffer.from(text).toString('hex')}'`);
const strings = characters.map((text) => hex(text.toWellFormed()));

const binaries = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => `X'${Buffer.from(bytes).toString('hex')}'`),
  fc.integer({ min: 0, max: 255 }).map((n) => `b'${n.toString(2)}'`),
  fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 70 }).map((text) => `CAST('${text}' AS BINARY)`),
);

/** Through the server's parser, with numbers spelled as texts have them. */
const parsed = fc
  .oneof(
    fc.json({ maxDepth: 3 }),
    fc.constantFrom(
      '1.0',
      '1e20',
      '-0.0',
      '1E+2',
      '0.10',
      '12345678901234567890123',
      '[]',
      '{}',
      'null',
      '"\\u00e9\\/"',
    ),
    fc.tuple(sign, digits(1, 20), digits(1, 20)).map(([minus, whole, part]) => `${minus}${Number(whole)}.${part}`),
  )
  .map((text) => `CAST(${hex(text)} AS JSON)`);

const geometries = fc.constantFrom("ST_GeomFromText('POINT(1.5 -2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)')");

const scalars = fc.oneof(
  fc.constantFrom('NULL', 'true', 'false', "CAST('null' AS JSON)"),
  ...[integers, doubles, decimals, times, strings, binaries, parsed],
  { arbitrary: geometries, weight: 1 },
);

export const jsonExpressions: fc.Arbitrary<string> = fc
  .letrec<Record<'value' | 'list' | 'map', string>>((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, { arbitrary: scalars, weight: 5 }, tie('list'), tie('map')),
    list: fc.array(tie('value'), { maxLength: 6 }).map((items) => `JSON_ARRAY(${items.join(', ')})`),
    map: fc
      .array(fc.tuple(fc.oneof(fc.constantFrom("''", "'a'", "'__proto__'", "'10'", "'9'"), strings), tie('value')), {
        maxLength: 6,
      })
      .map((members) => `JSON_OBJECT(${members.map(([key, value]) => `${key}, ${value}`).join(', ')})`),
  }))
  .value.map((expression) =>
    /^JSON_|AS JSON\)$/.test(expression) ? expression : `JSON_EXTRACT(JSON_ARRAY(${expression}), '$[0]')`,
  );
