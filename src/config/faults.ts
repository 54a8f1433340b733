import type { z } from 'zod';
import { patternOf } from './keys.ts';
import { isTree, type Path, pathText, valueAt } from './paths.ts';
import { SECRET_KEYS } from './schema.ts';
import { closestWord, misplacedOrMisspelt } from './suggest.ts';

/** One thing that is wrong with a configuration; safe to print. */
export interface ConfigFault {
  readonly path: Path;
  readonly message: string;
  /** Where it was written, when that is not the file: `CDC_RELAY_MYSQL_PORT`, `--set`. */
  readonly where?: string;
  /** The key that was meant: where it is missing, this is why. */
  readonly meant?: string;
}

/**
 * The schema's issues as faults. What was found is named by its kind; the value itself only where it is a number or a
 * word out of a fixed choice, and never under a key that holds a secret.
 */
export function faultsOf(issues: readonly z.core.$ZodIssue[], tree: unknown): ConfigFault[] {
  return issues.flatMap((issue) => faultsOfIssue(issue, [], tree));
}

function faultsOfIssue(issue: z.core.$ZodIssue, above: Path, tree: unknown): ConfigFault[] {
  const path = [...above, ...issue.path.filter((part) => typeof part !== 'symbol')];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey([...path, key]));
    case 'invalid_union': {
      const branch = branchMeant(issue.errors, valueAt(tree, path));
      if (branch !== undefined) return branch.flatMap((inner) => faultsOfIssue(inner, path, tree));
      return [{ path, message: `${found(path, valueAt(tree, path))}; expected ${issue.message}` }];
    }
    case 'invalid_value': {
      const value = valueAt(tree, path);
      return [
        { path, message: typeof value === 'string' ? notOneOf(value, issue.values) : expected(path, tree, issue) },
      ];
    }
    default:
      return [{ path, message: expected(path, tree, issue) }];
  }
}

function expected(path: Path, tree: unknown, issue: z.core.$ZodIssue): string {
  return `${found(path, valueAt(tree, path))}; expected ${issue.message}`;
}

/** The alternative of a union that the writer had in mind: the map for a map, the words for a text. */
function branchMeant(
  branches: readonly (readonly z.core.$ZodIssue[])[],
  value: unknown,
): readonly z.core.$ZodIssue[] | undefined {
  if (isTree(value)) return branches.find((issues) => !issues.some(isWrongKind));
  return typeof value === 'string' ? branches.find((issues) => issues.some(isWrongWord)) : undefined;
}

const isWrongKind = (issue: z.core.$ZodIssue): boolean =>
  issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value');
const isWrongWord = (issue: z.core.$ZodIssue): boolean => issue.path.length === 0 && issue.code === 'invalid_value';

function notOneOf(value: string, words: readonly unknown[]): string {
  const options = words.map(String);
  // A word out of a fixed choice is short; anything longer may be something that was pasted to the wrong place.
  const shown = /^[\w-]{1,24}$/.test(value) ? `"${value}"` : 'the text found';
  const meant = closestWord(value, options);
  return `${shown} is not one of ${options.join(', ')}${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}

export function unknownKey(path: Path): ConfigFault {
  const meant = misplacedOrMisspelt(path);
  return meant === undefined
    ? { path, message: 'unknown key' }
    : { path, message: `unknown key; did you mean ${meant}?`, meant };
}

/** What stands at a path, for people: `found a text`, `found 70000`, `missing`. */
export function found(path: Path, value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'found null';
  if (Array.isArray(value)) return 'found a list';
  switch (typeof value) {
    case 'string':
      return value === '' ? 'found an empty text' : 'found a text';
    case 'number':
      return SECRET_KEYS.has(patternOf(path)) ? 'found a number' : `found ${String(value)}`;
    case 'boolean':
      return SECRET_KEYS.has(patternOf(path)) ? 'found true or false' : `found ${String(value)}`;
    default:
      return 'found a map';
  }
}

/** `config: 2 faults in relay.yaml`, then one aligned line for each. `where`: `in relay.yaml`, or why in none. */
export function report(faults: readonly ConfigFault[], where: string): string {
  const count = `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`;
  const names = faults.map((fault) => pathText(fault.path));
  const width = Math.min(32, Math.max(...names.map((name) => name.length)));
  const lines = faults.map(({ message, where }, index) => {
    const name = names[index] === '' ? '' : `${names[index].padEnd(width)}  `;
    return `  ${name}${message}${where === undefined ? '' : ` (${where})`}`;
  });
  return [`config: ${count} ${where}`, ...lines].join('\n');
}
