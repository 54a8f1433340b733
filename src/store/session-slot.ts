import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import { ConnectionCounts } from '../model/server-counts.ts';
import type { MysqlSettings } from '../model/settings.ts';
import { Session } from './session.ts';

export interface SessionSlotOptions {
  readonly mysql: MysqlSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** The server ends the session when it is silent for so long. */
  readonly takeOverMs: number;
  readonly counts?: ConnectionCounts;
}

/**
 * One session, made when it is needed, and again when it has died. One piece of work at a time, in the order asked for:
 * the statements of two must not fall into one transaction.
 */
export class SessionSlot {
  readonly #options: SessionSlotOptions;
  readonly #counts: ConnectionCounts;
  #session: Session | null = null;
  #waiting = 0;
  /** Settles with the last piece of work; never rejects. */
  #last: Promise<unknown> = Promise.resolve();
  #cancelClosing: (() => void) | null = null;

  constructor(options: SessionSlotOptions) {
    this.#options = options;
    this.#counts = options.counts ?? new ConnectionCounts();
  }

  use<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    this.#cancelClosing?.();
    this.#waiting++;
    const { clock } = this.#options;
    const askedMs = clock.nowMs();
    this.#counts.waiting++;
    const turn = this.#last.then(() => {
      this.#counts.waiting--;
      this.#counts.waitedMs += clock.nowMs() - askedMs;
      return this.#run(work);
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #run<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    this.#counts.working++;
    try {
      return await work(await this.#open());
    } finally {
      this.#counts.working--;
      this.#waiting--;
      // We close it before the server does: that would come with an error that nobody has asked for.
      const idleMs = this.#options.takeOverMs / 2;
      if (this.#waiting === 0)
        this.#cancelClosing = this.#options.clock.after(idleMs, () => this.#session?.destroy('IDLE'));
    }
  }

  /** Ends the session with whatever is under way. The slot can be used again. */
  destroy(): void {
    this.#session?.destroy();
  }

  close(): void {
    this.#cancelClosing?.();
    this.destroy();
  }

  async #open(): Promise<Session> {
    if (this.#session?.isUsable === true) return this.#session;
    const opened = await Session.open(this.#options.mysql, this.#options.log, this.#counts);
    await opened.endWhenSilentFor(this.#options.takeOverMs);
    this.#session = opened;
    return opened;
  }
}
