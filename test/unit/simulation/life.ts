import { fault } from '../../../src/model/fault.ts';
import type { Clock } from '../../../src/model/clock.ts';
import type { EventLoop } from './event-loop.ts';
import type { Call } from './plan.ts';

/**
 * One process of the relay. What happens in it happens when it runs: a frozen one catches up when it goes on, a dead
 * one never does. What it has asked of others goes on without it.
 */
export class Life {
  readonly name: string;
  readonly loop: EventLoop;
  state: 'running' | 'frozen' | 'dead' = 'running';
  /** As it says itself. */
  isPaused = false;
  /** What could not be written the last time: the application holds its rows. */
  readonly held = new Set<Call>();
  #late: (() => void)[] = [];

  constructor(name: string, loop: EventLoop) {
    this.name = name;
    this.loop = loop;
  }

  readonly clock: Clock = {
    nowMs: () => this.loop.nowMs,
    after: (delayMs, call) => {
      let isCancelled = false;
      const cancel = this.loop.in(delayMs, () => {
        this.inside(() => {
          if (!isCancelled) call();
        });
      });
      return () => {
        isCancelled = true;
        cancel();
      };
    },
  };

  inside(call: () => void): void {
    if (this.state === 'running') call();
    else if (this.state === 'frozen') this.#late.push(call);
  }

  die(): void {
    this.state = 'dead';
    this.#late = [];
  }

  freeze(): void {
    this.state = 'frozen';
  }

  goOn(): void {
    if (this.state !== 'frozen') return;
    this.state = 'running';
    const late = this.#late;
    this.#late = [];
    // One after the other: what is due in a process that goes on does not happen at one instant.
    for (const call of late) this.loop.in(0, () => this.inside(call));
  }

  /** False: the process has died before the request had left it. */
  hasSent(): boolean {
    return this.state !== 'dead' || this.loop.isOdd();
  }

  /**
   * Asks a server: the request takes its time, happens at one instant, and the answer takes its time; each less than
   * `limitMs`.
   */
  ask<T>(call: Call, happens: () => T, limitMs = Infinity): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.loop.in((this.loop.delayMs() % limitMs) + this.loop.slowMs(call), () => {
        if (!this.hasSent()) return;
        const isDone = this.loop.unanswered.get(call);
        const answer = attempt(
          isDone === false ? lost : happens,
          isDone === true ? () => reject(unreachable()) : resolve,
          reject,
        );
        this.loop.in(this.loop.delayMs() % limitMs, () => this.inside(answer));
      });
    });
  }
}

export function unreachable(): Error {
  return fault('MYSQL_UNREACHABLE', 'retry', 'the connection was lost');
}

function lost(): never {
  throw unreachable();
}

/** What is to be told of it. */
export function attempt<T>(happens: () => T, done: (result: T) => void, failed: (error: unknown) => void): () => void {
  try {
    const result = happens();
    return () => done(result);
  } catch (error) {
    return () => failed(error);
  }
}
