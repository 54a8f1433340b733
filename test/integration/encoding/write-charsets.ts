import { writeFileSync } from 'node:fs';
import { createConnection, type Connection } from 'mysql2/promise';
import { MULTI_BYTE_SHAPES } from '../../../src/encoding/charsets.ts';
import { nearCode } from '../../../src/encoding/multi-byte-charset.ts';
import { startMysql } from '../../stack/stack.ts';
import { characters, hex, SINGLE_BYTE_SETS, singleBytes } from './server-charsets.ts';

/** `node test/integration/encoding/write-charsets.ts` asks a server for its character sets and writes the tables. */
const DIRECTORY = new URL('../../../src/encoding/', import.meta.url);

const SINGLE_BYTE_DOC = `/**
 * The server's sets of one byte a character: those from 0x80 on, or all 256 where the lower half is not ASCII; NUL where
 * there is none. Written by test/integration/encoding/write-charsets.ts from a MySQL 9.7.
 */`;
const EXCEPTIONS_DOC = `/**
 * Where the server's sets of several bytes a character differ from iconv-lite's nearest (see MultiByteCharset).
 * Written by test/integration/encoding/write-charsets.ts from a MySQL 9.7.
 */`;

await using server = await startMysql();
const { host, port, user, password } = server;
const connection = await createConnection({ host, port, user, password, charset: 'utf8mb4' });
try {
  await writeSingleBytes(connection);
  await writeExceptions(connection);
} finally {
  connection.destroy();
}

async function writeSingleBytes(from: Connection): Promise<void> {
  const sets: Record<string, string> = {};
  for (const set of SINGLE_BYTE_SETS) {
    const all = [...(await singleBytes(from, set))].map(([byte, text]) =>
      text.toString() === '?' && byte !== 0x3f ? '\0' : text.toString(),
    );
    const isAscii = all.every((text, byte) => byte > 0x7f || text === String.fromCharCode(byte));
    sets[set] = all.slice(isAscii ? 0x80 : 0).join('');
  }
  write('single-byte-characters.ts', 'SINGLE_BYTE_CHARACTERS', SINGLE_BYTE_DOC, sets);
}

async function writeExceptions(from: Connection): Promise<void> {
  const sets: Record<string, string> = {};
  for (const [set, shape] of Object.entries(MULTI_BYTE_SHAPES)) {
    const runs: string[] = [];
    const widths: (1 | 2 | 3)[] = [...(shape.singles === undefined ? [] : [1 as const]), 2];
    if (shape.threes === true) widths.push(3);
    for (const width of widths) {
      const open = { first: -2, last: -2, unicode: -1 };
      const close = (): void => {
        if (open.last < 0) return;
        const codes = open.first === open.last ? '' : `-${hex(open.last, width)}`;
        runs.push(`${hex(open.first, width)}${codes}:${open.unicode < 0 ? '' : open.unicode.toString(16)}`);
      };
      for (const [code, text] of await characters(from, set, width)) {
        const bytes = Buffer.from(hex(code, width), 'hex');
        const unicode = text.toString() === '?' ? -1 : text.toString().charCodeAt(0);
        if ((nearCode(shape.near, bytes) ?? -1) === unicode) continue;
        const next = open.unicode < 0 ? -1 : open.unicode + code - open.first;
        if (code === open.last + 1 && unicode === next) {
          open.last = code;
        } else {
          close();
          Object.assign(open, { first: code, last: code, unicode });
        }
      }
      close();
    }
    sets[set] = runs.join(' ');
  }
  write('multi-byte-exceptions.ts', 'EXCEPTIONS', EXCEPTIONS_DOC, sets);
}

function write(file: string, name: string, doc: string, sets: Readonly<Record<string, string>>): void {
  const lines = Object.entries(sets).map(([set, text]) => `  ${set}: '${visible(text)}',`);
  const source = `${doc}\nexport const ${name}: Readonly<Record<string, string>> = {\n${lines.join('\n')}\n};\n`;
  writeFileSync(new URL(file, DIRECTORY), source);
}

/** Whatever an editor might not show, or show in another direction, as an escape. */
function visible(text: string): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll("'", "\\'")
    .replaceAll(/[\p{C}\p{Z}\p{M}\p{Script=Hebrew}\p{Script=Arabic}\p{Bidi_Control}]/gu, (c) =>
      c === ' ' ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
}
