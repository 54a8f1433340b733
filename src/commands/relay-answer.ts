import { type RelayStatus, relayStatusSchema } from '../http/status-view.ts';
import { valueOf } from '../model/secret.ts';
import type { HttpSettings } from '../model/settings.ts';

const WITHIN_MS = 1_500;

/**
 * What the relay says that listens where the configuration says, if one does. `absent`: none is there, which is no
 * fault: it may be on another machine. `unclear`: something is, and says nothing that can be used.
 */
export type RelayAnswer =
  | { readonly as: 'answered'; readonly address: string; readonly status: RelayStatus }
  | { readonly as: 'off' }
  | { readonly as: 'absent'; readonly address: string }
  | { readonly as: 'unclear'; readonly address: string; readonly why: string };

/** Never throws. */
export async function askRelay({ host, port, token }: HttpSettings, relay: string): Promise<RelayAnswer> {
  if (port === 0) return { as: 'off' };
  const address = `${reachable(host)}:${port}`;
  const unclear = (why: string): RelayAnswer => ({ as: 'unclear', address, why });
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(`http://${address}/status`, {
      headers: token === null ? {} : { authorization: `Bearer ${valueOf(token)}` },
      redirect: 'error',
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    body = await response.json().catch(() => null);
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return isLate ? unclear(`does not answer within ${WITHIN_MS / 1_000} s`) : { as: 'absent', address };
  }
  if (response.status === 401) return unclear('wants another http.token');
  const parsed = relayStatusSchema.safeParse(body);
  if (!response.ok || !parsed.success) return unclear('is no relay, or one of another version');
  if (parsed.data.relay !== relay) return unclear(`is another relay: ${parsed.data.relay}`);
  return { as: 'answered', address, status: parsed.data };
}

/** Who listens everywhere listens here. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
