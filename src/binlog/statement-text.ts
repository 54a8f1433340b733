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

/** Settings for one statement are shorter. */
const LONGEST_HEAD = 4096;

/** What `text`, run with `schema` as the default, may have done to the table. */
export function meansFor(
  text: string,
  schema: string,
  table: { readonly schema: string; readonly name: string },
): TextMeans {
  const means = meaningOf(text);
  return means !== 'nothing' && names(text.toLowerCase(), schema, table) ? means : 'nothing';
}

/** If it is about the table. */
function meaningOf(text: string): TextMeans {
  const words = wordsOf(text);
  const first = words.next().value ?? '';
  switch (first) {
    case 'create':
    case 'drop':
      return isOfNoTable(words) ? 'nothing' : 'definition';
    case 'set':
      // MariaDB: SET STATEMENT, values, FOR, the statement.
      return words.next().value === 'statement' ? meaningBehindFor(text) : 'nothing';
    case 'analyze': {
      // MariaDB: the statement is run, and how it was is shown; FORMAT=JSON hides which it is.
      const second = words.next().value ?? '';
      return second === 'format' ? 'inserts' : (MEANS[second] ?? 'nothing');
    }
    default:
      return MEANS[first] ?? 'nothing';
  }
}

/** Where the values end is not looked for: what may be a statement counts, and one that is not found may be any. */
function meaningBehindFor(text: string): TextMeans {
  const head = text.slice(0, LONGEST_HEAD);
  for (const { index } of head.matchAll(/\bfor\b/gi)) {
    const behind = head.slice(index + 'for'.length);
    const means = /^\W*set\b/i.test(behind) ? 'nothing' : meaningOf(behind);
    if (means !== 'nothing') return means;
  }
  return 'inserts';
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
    const quoted = isQuote(text[at - 1]) && text[at - 1] === text[at + wanted.length];
    if (!quoted && (isWord(text[at - 1]) || isWord(text[at + wanted.length]))) continue;
    const qualifier = QUALIFIER.exec(text.slice(Math.max(0, at - 200), quoted ? at - 1 : at));
    const { ticks, quotes, plain } = (qualifier?.groups ?? {}) as Partial<Record<string, string>>;
    const named = ticks?.replaceAll('``', '`') ?? quotes?.replaceAll('""', '"') ?? plain ?? schema.toLowerCase();
    if (named === latin1(table.schema)) return true;
  }
  return false;
}

/** The schema before a name, in backticks, in quotes (ANSI_QUOTES), or plain. */
const QUALIFIER = /(?:`(?<ticks>(?:[^`]|``)+)`|"(?<quotes>(?:[^"]|"")+)"|(?<plain>[\w$\u0080-\u00ff]+))\s*\.\s*$/;

function isQuote(character: string | undefined): boolean {
  return character === '`' || character === '"';
}

/** The log's bytes, as the text was read. */
function latin1(name: string): string {
  return Buffer.from(name, 'utf8').toString('latin1').toLowerCase();
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /[\w$\u0080-\u00ff]/.test(character);
}
