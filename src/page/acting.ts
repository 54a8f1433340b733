import type { View } from './relay-watch.ts';

/** Why nobody may act from here; null: somebody may. */
export function whyNot({ hasToken, lost }: View): string | null {
  if (lost !== null) return 'The relay does not answer.';
  if (!hasToken) return 'No token is set on the relay (http.tokenFile): use the command line.';
  return null;
}
