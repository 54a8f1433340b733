import type { ConfigFault } from './faults.ts';
import { KEYS, patternOf } from './keys.ts';
import { isTree, type Path, pathText, setAt, type Tree, valueAt } from './paths.ts';
import { SECRET_KEYS } from './schema.ts';
import { type FileValue, readValueFile } from './value-file.ts';

/** Keys whose value may stand in a file of its own. */
const FILE_KEYS = KEYS.filter(
  ({ pattern }) => pattern.endsWith('File') && KEYS.some((key) => `${key.pattern}File` === pattern),
);

export interface ValueFile {
  readonly key: string;
  /** Of the value. */
  readonly path: Path;
  readonly value: string;
  readonly look: () => FileValue;
}

export interface ValueFiles {
  /** The values that came out of a file, by their paths, and how to look into it again. */
  readonly read: ReadonlyMap<string, ValueFile>;
  readonly faults: readonly ConfigFault[];
}

/** Reads each `…File` and sets the key that it stands for. `directoryOf` is where a relative path starts. */
export function readValueFiles(tree: Tree, directoryOf: (path: Path) => string): ValueFiles {
  const read = new Map<string, ValueFile>();
  const faults: ConfigFault[] = [];
  for (const { path } of FILE_KEYS) {
    const target = [...path.slice(0, -1), path.at(-1)!.slice(0, -'File'.length)];
    const name = valueAt(tree, path);
    if (typeof name !== 'string' || name === '' || valueAt(tree, target) !== undefined) continue;
    const directory = directoryOf(path);
    const look = (): FileValue => readValueFile(name, directory);
    const file = look();
    if (file.ok) {
      setAt(tree, target, file.value);
      read.set(pathText(target), { key: pathText(path), path: target, value: file.value, look });
    } else faults.push({ path, message: file.problem });
  }
  return { read, faults };
}

/** Every secret in a configuration, wherever it came from. */
export function secretsIn(config: Tree): string[] {
  const found: string[] = [];
  visit(config, [], (path, value) => {
    if (SECRET_KEYS.has(patternOf(path)) && typeof value === 'string' && value !== '') found.push(value);
  });
  return found;
}

const REDACTED = '[redacted]';

/** A configuration to look at: secrets blanked, values that came from a file left out (the file's name is there). */
export function redact(config: Tree, fromFiles: { has(path: string): boolean }): Tree {
  const out = structuredClone(config);
  visit(out, [], (path, value, parent) => {
    const name = path.at(-1)!;
    if (fromFiles.has(pathText(path))) Reflect.deleteProperty(parent, name);
    else if (SECRET_KEYS.has(patternOf(path)) && value !== '') Reflect.set(parent, name, REDACTED);
  });
  return out;
}

function visit(tree: object, path: Path, see: (path: Path, value: unknown, parent: object) => void): void {
  for (const [name, value] of Object.entries(tree) as [string, unknown][]) {
    const at = [...path, Array.isArray(tree) ? Number(name) : name];
    if (isTree(value) || Array.isArray(value)) visit(value, at, see);
    else see(at, value, tree);
  }
}
