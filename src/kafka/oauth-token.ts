import { z } from 'zod';
import { fault, type RelayError } from '../model/fault.ts';
import { valueOf } from '../model/secret.ts';
import type { SaslSettings } from '../model/settings.ts';

type OauthSettings = Extract<SaslSettings, { mechanism: 'oauthbearer' }>;

const Answer = z.object({ access_token: z.string().min(1), expires_in: z.coerce.number().positive().optional() });
const Refusal = z.object({ error: z.string().regex(/^[a-z_]{1,40}$/) });

/** A new token is fetched when this part of the old one's life is over. */
const FRESH_SHARE = 0.8;

/**
 * Access tokens by the client credentials grant (RFC 6749, 4.4), kept while they are fresh. One request at a time,
 * shared by all connections, bounded by `timeoutMs`. Throws a `RelayError`: halt when the endpoint refuses the client,
 * retry when it cannot be asked. Neither token nor secret is in it.
 */
export class OauthTokens {
  readonly #settings: OauthSettings;
  readonly #timeoutMs: number;
  #token: { readonly value: string; readonly freshUntilMs: number } | null = null;
  #fetching: Promise<string> | null = null;

  constructor(settings: OauthSettings, timeoutMs: number) {
    this.#settings = settings;
    this.#timeoutMs = timeoutMs;
  }

  async token(): Promise<string> {
    if (this.#token !== null && performance.now() < this.#token.freshUntilMs) return this.#token.value;
    this.#fetching ??= this.#fetch().finally(() => (this.#fetching = null));
    return this.#fetching;
  }

  /** The broker has refused the token: the next connection gets a new one. */
  forget(): void {
    this.#token = null;
  }

  async #fetch(): Promise<string> {
    const { tokenEndpoint, clientId, clientSecret, scope } = this.#settings;
    const askedMs = performance.now();
    let response: Response;
    let body: unknown;
    try {
      response = await fetch(tokenEndpoint, {
        method: 'POST',
        redirect: 'error',
        signal: AbortSignal.timeout(this.#timeoutMs),
        headers: { authorization: basic(clientId, valueOf(clientSecret)), accept: 'application/json' },
        body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }),
      });
      const text = await response.text();
      body = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : null;
    } catch (error) {
      throw this.#fault('retry', 'cannot be asked', error);
    }
    if (!response.ok) {
      const refusal = Refusal.safeParse(body);
      const why = `answered ${response.status}${refusal.success ? ` ${refusal.data.error}` : ''}`;
      throw this.#fault(isRefusal(response.status) ? 'halt' : 'retry', why);
    }
    const answer = Answer.safeParse(body);
    if (!answer.success) throw this.#fault('retry', 'answered without an access_token');
    const { access_token: value, expires_in: seconds } = answer.data;
    // A token of unknown life serves this one connection.
    this.#token = seconds === undefined ? null : { value, freshUntilMs: askedMs + seconds * 1000 * FRESH_SHARE };
    return value;
  }

  #fault(disposition: 'halt' | 'retry', why: string, cause?: unknown): RelayError {
    const endpoint = URL.canParse(this.#settings.tokenEndpoint)
      ? new URL(this.#settings.tokenEndpoint).origin
      : 'kafka.sasl.tokenEndpoint';
    return fault('KAFKA_AUTHENTICATION', disposition, `the token endpoint ${endpoint} ${why}`, cause);
  }
}

/** 429 and 408 are the endpoint's own trouble. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 429 && status !== 408;
}

/** RFC 6749, 2.3.1: both are form-encoded before they are joined. */
function basic(clientId: string, clientSecret: string): string {
  const encode = (text: string) => new URLSearchParams([['', text]]).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')}`;
}
