import { z } from 'zod';
import { type FailedList, failedActionSchema, failedListSchema } from '../http/failed-view.ts';
import { type HistoryView, historySchema } from '../http/history-view.ts';
import { type ParkedList, parkedListSchema } from '../http/parked-view.ts';
import { type RelayStatus, relayStatusSchema } from '../http/status-view.ts';
import { type Answer, RelayClient } from './relay-client.ts';

const LOOK_MS = 2_000;
const HIDDEN_LOOK_MS = 15_000;
/** Lists cost the database a connection. */
const LIST_MS = 15_000;
const NOTE_MS = 30_000;
const TOKEN_KEY = 'cdc-relay-token';

const readiness = z.object({ state: z.string(), reasons: z.array(z.string()) });

/** All that the page knows. Times are by the relay's clock: those that it tells and those of its log. */
export interface View {
  readonly status: RelayStatus | null;
  readonly statusAtMs: number;
  /** How far the relay's clock is ahead of this machine's. */
  readonly aheadMs: number;
  readonly history: HistoryView | null;
  readonly failed: Listed<FailedList>;
  readonly parked: Listed<ParkedList>;
  /** Since when nobody has answered. */
  readonly lost: { readonly sinceMs: number; readonly why: string } | null;
  /** The relay tells no more than its state without a token. */
  readonly locked: { readonly state: string; readonly wasRefused: boolean } | null;
  readonly hasToken: boolean;
  readonly note: Note | null;
}

export interface Listed<T> {
  readonly list: T | null;
  readonly why: string | null;
}

export interface Note {
  readonly text: string;
  readonly isBad: boolean;
}

const NOT_LISTED = { list: null, why: null };

/** Asks the relay again and again, seldom while nobody looks at the page, and carries out what people ask for. */
export class RelayWatch {
  readonly #client = new RelayClient();
  readonly #listeners = new Set<() => void>();
  #wake: () => void = () => undefined;
  #listsDueMs = 0;
  #counts = '';
  view: View;

  constructor() {
    this.#client.token = sessionStorage.getItem(TOKEN_KEY);
    this.view = {
      ...{ status: null, statusAtMs: 0, aheadMs: 0, history: null, failed: NOT_LISTED, parked: NOT_LISTED },
      ...{ lost: null, locked: null, hasToken: this.#client.token !== null, note: null },
    };
  }

  start(): void {
    document.addEventListener('visibilitychange', () => this.#wake());
    void this.#run();
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Null forgets it. It is kept for as long as this tab is open. */
  setToken(token: string | null): void {
    this.#client.token = token;
    if (token === null) sessionStorage.removeItem(TOKEN_KEY);
    else sessionStorage.setItem(TOKEN_KEY, token);
    this.#show({ hasToken: token !== null, note: null, ...(token === null ? { status: null, history: null } : {}) });
    this.#lookSoon();
  }

  async act(action: 'retry' | 'discard', outbox: string, id: string): Promise<void> {
    const answer = await this.#client.post(`/failed/${action}`, { outbox, ids: [id] }, failedActionSchema);
    this.#told(answer, ({ rows: [row], laterPublished }) => {
      if (row.outcome === 'held') return bad(`Row ${id} is held by another transaction: try again.`);
      if (row.outcome === 'not-failed') return bad(`Row ${id} is not there, or has not failed (any more).`);
      if (action === 'discard') return good(`Row ${id} is deleted.`);
      const later = laterPublished ?? 0;
      const order = later === 0 ? '' : ` ${later} later events of its aggregate are published already.`;
      return good(`Row ${id} is pending again.${order}`);
    });
  }

  async pause(isPause: boolean): Promise<void> {
    const answer = await this.#client.post(isPause ? '/pause' : '/resume', {}, z.object({ paused: z.boolean() }));
    this.#told(answer, ({ paused }) => good(paused ? 'The relay pauses.' : 'The relay goes on.'));
  }

  async cancel(job: string): Promise<void> {
    const answer = await this.#client.post(`/jobs/${job}/cancel`, {}, z.object({ cancelled: z.boolean() }));
    this.#told(answer, () => good(`Job ${job} is cancelled; what has been sent stays sent.`));
  }

  #told<T>(answer: Answer<T>, note: (value: T) => Note): void {
    if (answer.kind === 'answer') this.#show({ note: note(answer.value) });
    else if (answer.kind === 'refused' && answer.code === 401) this.#show({ note: bad('The token was refused.') });
    else this.#show({ note: bad(`Nothing was done, or nobody knows: ${answer.why}.`) });
    const { note: told } = this.view;
    setTimeout(() => {
      if (this.view.note === told) this.#show({ note: null });
    }, NOTE_MS);
    this.#lookSoon();
  }

  #lookSoon(): void {
    this.#listsDueMs = 0;
    this.#wake();
  }

  #show(change: Partial<View>): void {
    this.view = { ...this.view, ...change };
    for (const listener of this.#listeners) listener();
  }

  async #run(): Promise<never> {
    for (;;) {
      // Made before the look: what is asked for meanwhile is not waited for.
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await this.#look();
      const waitMs = document.hidden ? HIDDEN_LOOK_MS : LOOK_MS;
      await Promise.race([woken, new Promise((resolve) => setTimeout(resolve, waitMs))]);
    }
  }

  async #look(): Promise<void> {
    const status = await this.#client.get('/status', relayStatusSchema);
    if (status.kind === 'refused' && status.code === 401) return this.#lookFromOutside();
    if (status.kind !== 'answer') {
      this.#show({ lost: { sinceMs: this.view.lost?.sinceMs ?? this.#client.nowMs(), why: status.why } });
      return;
    }
    const { aheadMs } = this.#client;
    this.#show({ status: status.value, statusAtMs: this.#client.nowMs(), aheadMs, lost: null, locked: null });
    if (document.hidden) return;
    const history = await this.#client.get('/history', historySchema);
    if (history.kind === 'answer') this.#show({ history: history.value });
    await this.#lookAtLists(status.value);
  }

  async #lookFromOutside(): Promise<void> {
    const ready = await this.#client.get('/readyz', readiness);
    if (ready.kind === 'answer') {
      const locked = { state: ready.value.state, wasRefused: this.view.hasToken };
      this.#show({ status: null, history: null, lost: null, locked });
    } else {
      this.#show({ lost: { sinceMs: this.view.lost?.sinceMs ?? this.#client.nowMs(), why: ready.why } });
    }
  }

  async #lookAtLists({ outboxes, term }: RelayStatus): Promise<void> {
    const failed = outboxes?.reduce((sum, { waiting }) => sum + (waiting?.failedRows ?? 0), 0) ?? 0;
    const parked = Object.values(term?.parked ?? {}).reduce((sum, count) => sum + count, 0);
    const counts = `${failed} ${parked}`;
    const isKnown =
      counts === this.#counts && failed === lengthOf(this.view.failed.list?.rows, this.view.failed.list?.more, failed);
    if (isKnown && performance.now() < this.#listsDueMs) return;
    this.#counts = counts;
    this.#listsDueMs = performance.now() + LIST_MS;
    const none = { version: 1, more: false } as const;
    // Of a relay that does not lead nobody but the database knows what is parked.
    const [failedRows, parkedScopes] = await Promise.all([
      failed === 0 ? listed({ ...none, rows: [] }) : this.#client.get('/failed?limit=50', failedListSchema),
      parked === 0 && term !== null ? listed({ ...none, parked: [] }) : this.#client.get('/parked', parkedListSchema),
    ]);
    this.#show({ failed: listedOf(failedRows, this.view.failed), parked: listedOf(parkedScopes, this.view.parked) });
  }
}

/** Where there are more than are listed, as many as are counted. */
function lengthOf(rows: readonly unknown[] | undefined, more: boolean | undefined, counted: number): number {
  return rows === undefined || more === true ? counted : rows.length;
}

function listed<T>(value: T): Promise<Answer<T>> {
  return Promise.resolve({ kind: 'answer', value });
}

/** What nobody answers to leaves what was known: the page says that it is from before. */
function listedOf<T>(answer: Answer<T>, before: Listed<T>): Listed<T> {
  if (answer.kind === 'answer') return { list: answer.value, why: null };
  return answer.kind === 'lost' ? before : { list: null, why: answer.why };
}

function good(text: string): Note {
  return { text, isBad: false };
}

function bad(text: string): Note {
  return { text, isBad: true };
}
