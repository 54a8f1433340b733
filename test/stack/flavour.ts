import { inject } from 'vitest';
import type { DatabaseOptions, DatabaseServer } from './handles.ts';
import { startMariadb, startMysql } from './stack.ts';

/** The product that this run of a test file is against: the project `mariadb` runs the same files once more. */
export function isMariadb(): boolean {
  return inject('flavour') === 'mariadb';
}

/** A server of the test's own, of that product. */
export function startDatabase(options: DatabaseOptions = {}): Promise<DatabaseServer> {
  return isMariadb() ? startMariadb(options) : startMysql(options);
}
