import { z } from 'zod';

export type Answer<T> =
  | { readonly kind: 'answer'; readonly value: T }
  /** The relay says no. */
  | { readonly kind: 'refused'; readonly code: number; readonly why: string }
  /** Nobody answers. */
  | { readonly kind: 'lost'; readonly why: string };

const WITHIN_MS = 5_000;
/** People wait for it, and the database may take its time. */
const ACT_WITHIN_MS = 30_000;
/** `date` has whole seconds, and an answer takes its time: clocks that are as near as that agree. */
const NEAR_MS = 3_000;
const refusal = z.object({ error: z.string(), fix: z.string().nullish() });

/** Asks the relay that this page came from. The token goes along in a header, which no other page can make. */
export class RelayClient {
  token: string | null = null;
  /** How far the relay's clock is ahead of this machine's, by its last answer. */
  aheadMs = 0;

  nowMs(): number {
    return Date.now() + this.aheadMs;
  }

  get<T>(path: string, schema: z.ZodType<T>): Promise<Answer<T>> {
    return this.#ask(path, schema, { signal: AbortSignal.timeout(WITHIN_MS) });
  }

  post<T>(path: string, body: object, schema: z.ZodType<T>): Promise<Answer<T>> {
    return this.#ask(path, schema, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(ACT_WITHIN_MS),
    });
  }

  async #ask<T>(path: string, schema: z.ZodType<T>, init: RequestInit): Promise<Answer<T>> {
    const headers = new Headers(init.headers);
    if (this.token !== null) headers.set('authorization', `Bearer ${this.token}`);
    let body: unknown;
    let response: Response;
    try {
      response = await fetch(`.${path}`, { ...init, headers, cache: 'no-store', credentials: 'omit' });
      this.aheadMs = aheadMs(response.headers.get('date'), Date.now());
      body = await response.json();
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === 'TimeoutError';
      return { kind: 'lost', why: isLate ? 'it does not answer in time' : 'it cannot be reached' };
    }
    if (!response.ok && path !== '/readyz') {
      const { data } = refusal.safeParse(body);
      const fix = data?.fix == null ? '' : ` (${data.fix})`;
      return { kind: 'refused', code: response.status, why: data === undefined ? 'no reason given' : data.error + fix };
    }
    const { success, data } = schema.safeParse(body);
    if (success) return { kind: 'answer', value: data };
    return { kind: 'lost', why: 'its answer is of another version than this page: load the page again' };
  }
}

export function aheadMs(date: string | null, nowMs: number): number {
  const apartMs = Date.parse(date ?? '') - nowMs;
  return Math.abs(apartMs) > NEAR_MS ? apartMs : 0;
}
