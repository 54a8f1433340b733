import { type Fault, RelayError } from '../model/fault.ts';

/** An answer, or why there is none: a right that is missing, a statement that the server does not know. */
export type Asked<T> = { readonly known: true; readonly value: T } | { readonly known: false; readonly why: Fault };

const CONNECTION_GONE = new Set(['MYSQL_UNREACHABLE', 'MYSQL_QUERY_TIMEOUT']);

/** Rejects only when the connection is gone: then nothing more can be asked on it. */
export async function asked<T>(ask: () => Promise<T>): Promise<Asked<T>> {
  try {
    return { known: true, value: await ask() };
  } catch (error) {
    if (!(error instanceof RelayError) || CONNECTION_GONE.has(error.fault.code)) throw error;
    return { known: false, why: error.fault };
  }
}

/** The value, where there is one. */
export function valueOr<T, U>(answer: Asked<T>, otherwise: U): T | U {
  return answer.known ? answer.value : otherwise;
}

export function isDenied(fault: Fault): boolean {
  return fault.code === 'MYSQL_ACCESS_DENIED';
}
