import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

export type FileValue =
  { readonly ok: true; readonly value: string } | { readonly ok: false; readonly problem: string };

/** A look that does not take what is not usable; the value of the start is. `problemOf` is asked of each other value once. */
export function lookFor(
  { value, look }: { readonly value: string; readonly look: () => FileValue },
  problemOf: (value: string) => string | null,
): () => FileValue {
  let usable = value;
  return () => {
    const file = look();
    if (!file.ok || file.value === usable) return file;
    const problem = problemOf(file.value);
    if (problem !== null) return { ok: false, problem };
    usable = file.value;
    return file;
  };
}

/** Reads a value that has a file of its own (a mounted secret, a certificate), without the line end at its end. */
export function readValueFile(path: string, directory: string): FileValue {
  try {
    const value = readFileSync(resolve(directory, path), 'utf8').replace(/\r?\n$/, '');
    return value === '' ? { ok: false, problem: 'the file is empty' } : { ok: true, value };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
    // The path is not repeated: now and then a secret stands where its file's name should.
    const where = path.startsWith('/') ? '' : `; relative paths start at ${directory}`;
    return { ok: false, problem: `the file cannot be read: ${REASONS[code] ?? code}${where}` };
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'it does not exist',
  ERR_INVALID_ARG_VALUE: 'it is not a path',
};
