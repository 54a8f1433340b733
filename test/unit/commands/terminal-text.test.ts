import fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapedText } from '../../../src/commands/text.ts';
import { terminalText } from '../../../src/model/terminal-text.ts';

/** Moves the cursor, changes colors, titles or the direction of what follows, or ends the line. */
const DANGEROUS = /(?![\n\t])\p{Cc}|\p{Cf}|[\u2028\u2029]/u;

const nasty = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\u001b', '\u009b', '\u202e', '\u2066', '\r', '\u0007', '\u007f', '\u200f', '\u{e0041}', '\\', '"'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
});

test('nothing that a terminal acts on comes through, and text of people stays as it is', () => {
  fc.assert(
    fc.property(nasty, (text) => {
      expect(terminalText(text)).not.toMatch(DANGEROUS);
      expect(escapedText(text, false)).not.toMatch(/\p{Cc}|\p{Cf}/u);
      expect(escapedText(text, true)).toMatch(/^[\x20-\x7e]*$/);
    }),
  );
  const plain = 'FLOWING  orders on db1:3306 – 1,204 rows\n  größer, 漢字, 🙂\t"x"';
  expect(terminalText(plain)).toBe(plain);
});

test('JSON that went through means what it meant', () => {
  fc.assert(
    fc.property(nasty, (text) => {
      const json = JSON.stringify({ [text]: [text] });
      expect(JSON.parse(terminalText(json))).toEqual(JSON.parse(json));
    }),
  );
});
