import type { SecretFile } from '../model/secret.ts';
import { readMysqlUrl, type UrlParts } from './mysql-url.ts';
import type { FileValue } from './value-file.ts';

/** What a file of a URL held at the start, and how to look into it again. */
export interface UrlFile {
  readonly key: string;
  readonly value: string;
  readonly look: () => FileValue;
}

/** Of what a URL gives, these may change while the relay runs. */
export type LoginPart = 'user' | 'password';

/** Why the URL that stands in the file now is not used; null: it is. Another server is not changed to under way. */
export function urlProblem(first: string, now: string): string | null {
  const [before, after] = [first, now].map(readMysqlUrl);
  if (typeof after === 'string') return after;
  const { host, port, database, user } = before as UrlParts;
  if (after.host !== host || (after.port ?? 3306) !== (port ?? 3306) || after.database !== database) {
    return 'found another host, port or database than at the start; restart the relay for these';
  }
  return after.user === undefined && user !== undefined ? 'found a URL without a user' : null;
}

/** A URL without a password is one without a password. */
export function partOf(url: string, part: LoginPart): string {
  return (readMysqlUrl(url) as UrlParts)[part] ?? '';
}

/** One part of the URL, which is taken or refused as a whole. */
export function loginPart(file: SecretFile, part: LoginPart): SecretFile {
  return {
    read: () => partOf(file.read(), part),
    accepted: () => file.accepted(),
    refused: () => file.refused(),
  };
}
