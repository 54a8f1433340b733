import type { TransactionGroup } from '../model/source.ts';

/** What of the log waits to be pulled: about four chunks of a socket. */
const FULL_GROUPS = 4;
const FULL_BYTES = 256 * 1024;

/**
 * Push to pull, bounded: the pusher stops while it is full. What was pushed before the end is still handed out, then
 * the end. One puller.
 */
export class GroupQueue {
  #groups: { readonly group: TransactionGroup; readonly bytes: number }[] = [];
  #bytes = 0;
  #end: { readonly error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  get isFull(): boolean {
    return this.#groups.length >= FULL_GROUPS || this.#bytes >= FULL_BYTES;
  }

  get isEmpty(): boolean {
    return this.#groups.length === 0;
  }

  push(group: TransactionGroup, bytes: number): void {
    this.#groups.push({ group, bytes });
    this.#bytes += bytes;
    this.#wake?.();
  }

  /** The first end counts. Null: nothing went wrong. */
  end(error: Error | null): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** Null at the end. Throws what the queue was ended with. */
  async pull(): Promise<TransactionGroup | null> {
    while (this.#groups.length === 0 && this.#end === null) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
    const first = this.#groups.shift();
    if (first !== undefined) {
      this.#bytes -= first.bytes;
      return first.group;
    }
    if (this.#end?.error instanceof Error) throw this.#end.error;
    return null;
  }
}
