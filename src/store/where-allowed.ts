import { RelayError } from '../model/fault.ts';

/** What was asked for; null where the user may not ask. */
export async function whereAllowed<T>(asking: Promise<T>): Promise<T | null> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof RelayError && error.fault.code === 'MYSQL_ACCESS_DENIED') return null;
    throw error;
  }
}
