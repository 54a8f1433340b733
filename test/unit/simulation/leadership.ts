import { fault } from '../../../src/model/fault.ts';
import type { Leader } from '../../../src/model/store.ts';
import { type Life, unreachable } from './life.ts';
import type { Server } from './server.ts';

export const TAKE_OVER_MS = 600;
const PING_MS = TAKE_OVER_MS / 3;
/** The lock's connection has nothing else to do. */
const ANSWER_MS = 20;

interface Hold {
  readonly life: Life;
  readonly lost: AbortController;
  answeredMs: number;
}

/** The leader lock. A holder that is dead or does not ping loses it; who has lost it learns that with its next ping. */
export class Leadership {
  readonly #server: Server;
  #holder: Hold | null = null;

  constructor(server: Server) {
    this.#server = server;
  }

  get leader(): Life | null {
    return this.#holder?.life ?? null;
  }

  /** The server ends the connection that holds the lock. */
  cut(): void {
    this.#holder = null;
  }

  async lead(life: Life, signal: AbortSignal, onStandby: () => void): Promise<Leader> {
    const hold: Hold = { life, lost: new AbortController(), answeredMs: 0 };
    const free = (): void => {
      if (this.#holder === hold) this.#holder = null;
    };
    // Where it fails its connection is closed, and with it the lock is gone.
    const epoch = await this.#lead(hold, signal, onStandby).catch((error: unknown) => {
      free();
      throw error;
    });
    hold.answeredMs = life.clock.nowMs();
    this.#ping(hold);
    const leader = {
      epoch,
      lost: hold.lost.signal,
      maySend: () => !hold.lost.signal.aborted && life.clock.nowMs() - hold.answeredMs < TAKE_OVER_MS / 2,
      release: () => life.ask('other', free).catch(free),
    };
    return leader as unknown as Leader;
  }

  /** Returns the epoch. */
  async #lead(hold: Hold, signal: AbortSignal, onStandby: () => void): Promise<number> {
    const { life } = hold;
    for (let tries = 1; !(await life.ask('other', () => this.#take(hold), ANSWER_MS)); tries++) {
      if (signal.aborted) throw fault('STOPPED', 'halt', 'stopped while waiting for the leader lock');
      if (tries === 1) onStandby();
      await new Promise<void>((resolve) => {
        life.clock.after(PING_MS, resolve);
      });
    }
    return await this.#server.transact(life, null, 'other', () => {
      // The lock's own connection asks for it.
      if (this.#holder !== hold) throw unreachable();
      return { rows: [], apply: () => ++this.#server.epoch };
    });
  }

  #take(hold: Hold): boolean {
    const { loop } = this.#server;
    if (this.#holder !== null) return false;
    this.#holder = hold;
    let pingedMs = loop.nowMs;
    const watch = (): void => {
      if (this.#holder !== hold) return;
      if (hold.life.state === 'running') pingedMs = loop.nowMs;
      if (hold.life.state === 'dead' || loop.nowMs - pingedMs >= TAKE_OVER_MS) this.#holder = null;
      else loop.in(PING_MS / 5, watch);
    };
    watch();
    return true;
  }

  #ping(hold: Hold): void {
    const { life } = hold;
    life.clock.after(PING_MS, () => {
      if (hold.lost.signal.aborted) return;
      const askedMs = life.clock.nowMs();
      void life
        .ask('other', () => this.#holder === hold, ANSWER_MS)
        .then(
          (isOurs) => {
            if (!isOurs) {
              hold.lost.abort();
              return;
            }
            hold.answeredMs = askedMs;
            this.#ping(hold);
          },
          () => hold.lost.abort(),
        );
    });
  }
}
