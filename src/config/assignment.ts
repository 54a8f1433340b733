import { parseDocument } from 'yaml';
import type { ConfigFault } from './faults.ts';
import type { Key } from './keys.ts';
import { isTree, type Path } from './paths.ts';
import type { UrlFile } from './url-file.ts';

/** One value from a variable or a flag, on its way into the configuration. */
export interface Assignment {
  readonly path: Path;
  readonly value: unknown;
  /** `CDC_RELAY_MYSQL_PORT`, `--set`. */
  readonly where: string;
  /** The file of the URL that it is a part of. */
  readonly urlFile?: UrlFile;
}

export interface Assignments {
  readonly assignments: readonly Assignment[];
  readonly faults: readonly ConfigFault[];
}

const UNREADABLE = Symbol('unreadable');

/** The value that a text stands for, by its key; what cannot be read stays text, and the schema says what it wants. */
export function assign(key: Key, path: Path, text: string, where: string): Assignments {
  const value = readAs(key, text);
  if (value === UNREADABLE) {
    return {
      assignments: [],
      faults: [{ path, where, message: 'found a text that is not YAML; expected YAML or JSON' }],
    };
  }
  return { assignments: [{ path, value, where }], faults: [] };
}

function readAs(key: Key, text: string): unknown {
  switch (key.reading) {
    case 'text':
      return text;
    case 'number':
      return /^\d{1,16}$/.test(text) ? Number(text) : text;
    case 'yes-or-no':
      return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
    case 'list':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
    case 'yaml':
      return readYaml(text);
  }
}

/** Maps, lists and yes or no; a plain word stays the text that it is. */
function readYaml(text: string): unknown {
  const document = parseDocument(text, { prettyErrors: false });
  if (document.errors.length > 0 || document.warnings.length > 0) return UNREADABLE;
  try {
    // Without aliases: one that contains itself would make a tree without an end.
    const value: unknown = document.toJS({ maxAliasCount: 0 });
    return isTree(value) || Array.isArray(value) || typeof value === 'boolean' ? value : text;
  } catch {
    return UNREADABLE;
  }
}
