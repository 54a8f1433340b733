import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { MysqlSettings } from '../model/settings.ts';
import { Session } from './session.ts';

export interface SessionSlotOptions {
  readonly mysql: MysqlSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** The server ends the session when it is silent for so long. */
  readonly takeOverMs: number;
}

/** One session, made when it is needed, and again when it has died. */
export class SessionSlot {
  readonly #options: SessionSlotOptions;
  #session: Session | null = null;
  #uses = 0;
  #cancelClosing: (() => void) | null = null;

  constructor(options: SessionSlotOptions) {
    this.#options = options;
  }

  async use<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    this.#cancelClosing?.();
    this.#uses++;
    try {
      return await work(await this.#open());
    } finally {
      this.#uses--;
      // We close it before the server does: that would come with an error that nobody has asked for.
      const idleMs = this.#options.takeOverMs / 2;
      if (this.#uses === 0) this.#cancelClosing = this.#options.clock.after(idleMs, () => this.#session?.destroy());
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
    const current = this.#usable();
    if (current !== null) return current;
    const opened = await Session.open(this.#options.mysql, this.#options.log);
    await opened.endWhenSilentFor(this.#options.takeOverMs);
    // Somebody else may have been as quick: one connection is enough.
    const meanwhile = this.#usable();
    if (meanwhile === null) this.#session = opened;
    else opened.destroy();
    return meanwhile ?? opened;
  }

  #usable(): Session | null {
    return this.#session?.isUsable === true ? this.#session : null;
  }
}
