import fc from 'fast-check';
import { Double, Int, type Json } from './binary-json.ts';
import { blob, date, datetime, decimal, time } from './opaque-values.ts';

/** Arbitrary JSON documents over every type that the server stores. */
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n });
const nearPowers = fc
  .tuple(fc.integer({ min: 0, max: 64 }), fc.integer({ min: -2, max: 2 }), fc.boolean())
  .map(([power, plus, negative]) => (2n ** BigInt(power) + BigInt(plus)) * (negative ? -1n : 1n))
  .filter((n) => n >= -(2n ** 63n) && n < 2n ** 64n);
const integers = fc.oneof(fc.integer({ min: -200, max: 200 }).map(BigInt), nearPowers, int64).map((n) => new Int(n));

export const doubles: fc.Arbitrary<number> = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  // Prices and the like, and powers of ten around the borders between the two notations.
  fc.tuple(fc.maxSafeInteger(), fc.integer({ min: 0, max: 20 })).map(([n, scale]) => n / 10 ** scale),
  fc.tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: -20, max: 20 })).map(([n, e]) => n * 10 ** e),
);

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\u0001', '\u001f', '\b', '\u007f', 'é', '键', '𝄞', '/', 'a') }),
  fc.tuple(fc.string({ minLength: 1 }), fc.integer({ min: 1, max: 60 })).map(([part, times]) => part.repeat(times)),
);
/** The server stores well-formed Unicode only. */
export const strings = text.map((string) => string.toWellFormed());

const clocks = fc.record({
  hours: fc.integer({ min: 0, max: 23 }),
  minutes: fc.integer({ min: 0, max: 59 }),
  seconds: fc.integer({ min: 0, max: 59 }),
  micros: fc.integer({ min: 0, max: 999_999 }),
});
const days = fc.record({
  year: fc.integer({ min: 0, max: 9999 }),
  month: fc.integer({ min: 0, max: 12 }),
  day: fc.integer({ min: 0, max: 31 }),
});
const digits = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom('0', '1', '2', '3', '4', '5', '6', '7', '8', '9'), maxLength });
const decimals = fc
  .tuple(fc.boolean(), digits(35), digits(30))
  .filter(([negative, whole, fraction]) => (negative ? /[1-9]/.test(whole + fraction) : whole + fraction !== ''))
  .map(([negative, whole, fraction]) => decimal(negative, whole, fraction));
const opaques = fc.oneof(
  decimals,
  fc
    .tuple(fc.boolean(), clocks, fc.integer({ min: 0, max: 838 }))
    .map(([negative, clock, hours]) => time(negative, { ...clock, hours })),
  days.map(date),
  fc.tuple(days, clocks).map(([day, clock]) => datetime(day, clock)),
  fc.tuple(days, clocks).map(([day, clock]) => datetime(day, clock, 'timestamp')),
  fc
    .tuple(fc.constantFrom(13, 15, 16, 252, 255), fc.uint8Array({ maxLength: 250 }))
    .map(([type, data]) => blob(type, Buffer.from(data))),
);

export const documents: fc.Arbitrary<Json> = fc.letrec<{ json: Json; map: Map<string, Json>; list: Json[] }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(null, true, false),
    integers,
    doubles.map((n) => new Double(n)),
    strings,
    opaques,
    tie('list'),
    tie('map'),
  ),
  list: fc.array(tie('json'), { maxLength: 8 }),
  map: fc
    .array(fc.tuple(fc.oneof(fc.constant('__proto__'), strings), tie('json')), { maxLength: 8 })
    .map((entries) => new Map(entries)),
})).json;

export const objects: fc.Arbitrary<Map<string, Json>> = fc
  .array(fc.tuple(strings, documents), { maxLength: 6 })
  .map((entries) => new Map(entries));
