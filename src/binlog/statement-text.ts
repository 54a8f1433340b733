/**
 * Statements that arrive as text where rows were expected (statement format). Only the text can tell whether an
 * outbox table is meant; it is never printed.
 */
export type TextMeans =
  /** Not about the table, or nothing that changes rows. */
  | 'nothing'
  /** May have inserted rows. */
  | 'inserts'
  /** May have changed or deleted rows. */
  | 'changes'
  /** May have changed the table's columns. */
  | 'definition';

/**
 * What may stand before a word: each alternative is passed once, so that no text takes long. Of a comment whose text is
 * executed (slash, star, exclamation mark; MariaDB: with an M) only the marks are passed over.
 */
const BEFORE = /\s+|\(|\/\*M?!\d*|\*\/|\/\*.*?\*\/|(?:--\s|#)[^\n]*/sy;
const WORD = /[a-z]+/iy;

const MEANS: Readonly<Record<string, TextMeans>> = {
  insert: 'inserts',
  replace: 'inserts',
  load: 'inserts',
  update: 'changes',
  delete: 'changes',
  with: 'changes',
  alter: 'definition',
  create: 'definition',
  drop: 'definition',
  rename: 'definition',
};

/** What may follow CREATE or DROP before it is said what is made or dropped. */
const ON_THE_WAY = new Set(['or', 'replace', 'unique', 'fulltext', 'spatial', 'if', 'not', 'exists']);
/** Things that name a table, or change rows of one when they run, and leave its columns alone. */
const NO_TABLES = new Set([
  'index',
  'trigger',
  'view',
  'procedure',
  'function',
  'event',
  'definer',
  'algorithm',
  'sql',
]);

/** What `text`, run with `schema` as the default, may have done to the table. */
export function meansFor(
  text: string,
  schema: string,
  table: { readonly schema: string; readonly name: string },
): TextMeans {
  const words = wordsOf(text);
  const first = words.next().value ?? '';
  const means = MEANS[first] ?? 'nothing';
  if (means === 'nothing' || ((first === 'create' || first === 'drop') && isOfNoTable(words))) return 'nothing';
  return names(text.toLowerCase(), schema, table) ? means : 'nothing';
}

function isOfNoTable(words: Iterable<string>): boolean {
  for (const word of words) if (!ON_THE_WAY.has(word)) return NO_TABLES.has(word);
  return false;
}

/** The words that the text begins with, up to the first thing that is none. */
function* wordsOf(text: string): Generator<string, undefined> {
  for (let at = 0; ;) {
    for (BEFORE.lastIndex = at; BEFORE.test(text); at = BEFORE.lastIndex);
    WORD.lastIndex = at;
    const word = WORD.exec(text)?.[0];
    if (word === undefined) return;
    at += word.length;
    yield word.toLowerCase();
  }
}

function names(text: string, schema: string, table: { readonly schema: string; readonly name: string }): boolean {
  const wanted = latin1(table.name);
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    const quoted = text[at - 1] === '`' && text[at + wanted.length] === '`';
    if (!quoted && (isWord(text[at - 1]) || isWord(text[at + wanted.length]))) continue;
    const qualifier = /(?:`((?:[^`]|``)+)`|([\w$\u0080-\u00ff]+))\s*\.\s*$/.exec(
      text.slice(Math.max(0, at - 200), quoted ? at - 1 : at),
    );
    const named = qualifier?.[1]?.replaceAll('``', '`') ?? qualifier?.[2] ?? schema.toLowerCase();
    if (named === latin1(table.schema)) return true;
  }
  return false;
}

/** The log's bytes, as the text was read. */
function latin1(name: string): string {
  return Buffer.from(name, 'utf8').toString('latin1').toLowerCase();
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /[\w$\u0080-\u00ff]/.test(character);
}
