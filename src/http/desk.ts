import type { FailedActionReport, FailedList } from './failed-view.ts';
import type { ParkedList } from './parked-view.ts';

/** What people ask for over HTTP beyond what the relay knows of itself: the same as the command line does. */
export interface Desk {
  failed(limit: number): Promise<FailedList>;
  parked(): Promise<ParkedList>;
  act(action: 'retry' | 'discard', outbox: string, ids: readonly string[], who: string): Promise<FailedActionReport>;
  /** Resolve with what holds then. */
  pause(who: string): Promise<boolean>;
  resume(who: string): Promise<boolean>;
  cancel(job: bigint, who: string): Promise<void>;
}

/** Why something asked for is not done; `code` is HTTP's. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: 400 | 404 | 409 | 429 | 503;
  readonly fix: string | null;

  constructor(code: Refusal['code'], message: string, fix: string | null = null) {
    super(message);
    this.code = code;
    this.fix = fix;
  }
}
