import { type Fault, RelayError } from '../model/fault.ts';
import type { SecretFile } from '../model/secret.ts';
import type { MysqlSettings } from '../model/settings.ts';

/** Of the server: it does not know the user or the password, or no longer takes them (locked, expired, another host). */
const REFUSED: ReadonlySet<unknown> = new Set([1045, 1698, 1130, 1862, 3118, 3955, 4150, 4151]);

/** The server has taken what was read. */
export function loggedIn(settings: MysqlSettings): void {
  for (const file of filesOf(settings)) file.accepted();
}

/**
 * Where a secret stands in a file and was taken before, a refusal may be one half of a rotation: whoever changes the
 * server and the file does not do it at the same moment. It is tried again then, for as long as the file says.
 */
export function loginFault(settings: MysqlSettings, error: RelayError, thrown: unknown): RelayError {
  const { fault } = error;
  if (fault.code !== 'MYSQL_ACCESS_DENIED' || fault.disposition !== 'halt' || !isOfLogin(thrown)) return error;
  const mayPass = filesOf(settings).filter((file) => file.refused()).length > 0;
  if (!mayPass) return error;
  return new RelayError({ ...fault, disposition: 'retry', detail: `${fault.detail}; ${AGAIN}` } satisfies Fault);
}

const AGAIN = 'it was right before: the files of the secrets are read again';

/** No right on a table that is missing: the password was refused, or, without a number, a certificate was. */
function isOfLogin(thrown: unknown): boolean {
  const { errno, sqlState } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Record<string, unknown>;
  return REFUSED.has(errno) || typeof sqlState !== 'string';
}

function filesOf({ user, password, tls }: MysqlSettings): SecretFile[] {
  return [user, password, tls?.ca, tls?.cert, tls?.key].filter((secret) => typeof secret === 'object');
}
