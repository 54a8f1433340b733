import {
  type Document,
  type ErrorCode,
  isCollection,
  isMap,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
import type { ConfigFault } from './faults.ts';
import { isTree, type Path, type Tree } from './paths.ts';

/** A configuration file, read: its values, and the line of each key. */
export interface ConfigFile {
  readonly tree: Tree;
  readonly lineOf: (path: Path) => number | undefined;
  readonly faults: readonly ConfigFault[];
}

export function parseConfigText(text: string): ConfigFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true });
  const lineOf = (path: Path): number | undefined => lineOfNode(document, lines, path);
  const broken = [...document.errors, ...document.warnings].map((error) => ({
    path: [],
    message: `${SYNTAX[error.code]} (line ${lines.linePos(error.pos[0]).line})`,
  }));
  if (broken.length > 0) return { tree: {}, lineOf, faults: broken };

  let value: unknown;
  try {
    value = strip(document.toJS({ maxAliasCount: 100 }));
  } catch {
    // Also where an alias stands for what contains it: that tree has no end.
    return { tree: {}, lineOf, faults: [{ path: [], message: brokenAlias(document, lines) }] };
  }
  if (value === null || value === undefined) return { tree: {}, lineOf, faults: [] };
  if (isTree(value)) return { tree: value, lineOf, faults: [] };
  return { tree: {}, lineOf, faults: [{ path: [], message: 'expected a map with name, mysql, kafka, outboxes' }] };
}

function brokenAlias(document: Document.Parsed, lines: LineCounter): string {
  let line: number | undefined;
  visit(document, {
    Alias: (_, node) => {
      if (node.resolve(document) !== undefined) return undefined;
      line = lines.linePos(node.range?.[0] ?? 0).line;
      return visit.BREAK;
    },
  });
  return line === undefined
    ? 'too many aliases, or an alias of what contains it'
    : `an alias of nothing; a text that begins with "*" stands in quotes (line ${line})`;
}

/** A key with nothing behind it (everything under it commented out) is not there; null means something for columns. */
function withoutNulls(tree: Tree): Tree {
  const out: Tree = {};
  for (const [name, value] of Object.entries(tree)) {
    if (value === null) continue;
    const kept = name === 'columns' ? structuredClone(value) : strip(value);
    Object.defineProperty(out, name, { value: kept, enumerable: true, configurable: true, writable: true });
  }
  return out;
}

function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip);
  return isTree(value) ? withoutNulls(value) : value;
}

/** The line of a key, or of the nearest map above it that the file has. */
function lineOfNode(document: Document.Parsed, lines: LineCounter, path: Path): number | undefined {
  let at: unknown = document.contents;
  let offset: number | undefined;
  for (const part of path) {
    if (isMap(at)) {
      const pair = at.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === part);
      if (pair === undefined) break;
      offset = (pair.key as Node).range?.[0] ?? offset;
      at = pair.value;
    } else if (isCollection(at) && typeof part === 'number') {
      const item = at.items[part] as Node | undefined;
      if (item === undefined) break;
      offset = item.range?.[0] ?? offset;
      at = item;
    } else break;
  }
  return offset === undefined ? undefined : lines.linePos(offset).line;
}

/** Our own words for each code of the library: its messages may quote the text, and the text holds secrets. */
const SYNTAX: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'not an alias; a text that begins with "*" stands in quotes',
  BAD_COLLECTION_TYPE: 'a tag that does not fit its map or list',
  BAD_DIRECTIVE: 'not a YAML directive; a text that begins with "%" stands in quotes',
  BAD_DQ_ESCAPE: 'an escape that double quotes do not have; use single quotes',
  BAD_INDENT: 'wrong indentation',
  BAD_PROP_ORDER: 'an anchor or tag in the wrong place',
  BAD_SCALAR_START: 'a text that begins with "@" or "`" stands in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'not a key; a text with ": " in it stands in quotes',
  BLOCK_IN_FLOW: 'a block inside [ ] or { }',
  DUPLICATE_KEY: 'the same key twice in one map',
  IMPOSSIBLE: 'not YAML',
  KEY_OVER_1024_CHARS: 'a key that is too long',
  MISSING_CHAR: 'a character is missing: a closing quote or bracket, a comma, a space behind ":" or before "#"',
  MULTILINE_IMPLICIT_KEY: 'a key over several lines; is a ":" missing?',
  MULTIPLE_ANCHORS: 'two anchors on one value',
  MULTIPLE_DOCS: 'more than one document ("---")',
  MULTIPLE_TAGS: 'two tags on one value',
  NON_STRING_KEY: 'a key that is not a text',
  RESOURCE_EXHAUSTION: 'nested too deeply',
  TAB_AS_INDENT: 'a tab in the indentation; use spaces',
  TAG_RESOLVE_FAILED: 'a tag that is not known here; a text that begins with "!" stands in quotes',
  UNEXPECTED_TOKEN: 'something that does not belong here; a text with special characters stands in quotes',
};
