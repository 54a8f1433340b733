import type { TransactionGroup } from '../model/source.ts';

/** What of the log waits to be pulled: about four chunks of a socket. */
const FULL_GROUPS = 4;
const FULL_BYTES = 256 * 1024;

/**
 * Push to pull, bounded: the pusher stops while it is full. What was pushed before the end is still handed out, then
 * the end. One puller.
 */
export class GroupQueue<T extends object = TransactionGroup> {
  #items: { readonly item: T; readonly bytes: number }[] = [];
  #bytes = 0;
  #end: { readonly error: Error | null } | null = null;
  #wake: (() => void) | null = null;
  #hasRoom: (() => void)[] = [];

  get isFull(): boolean {
    return this.#items.length >= FULL_GROUPS || this.#bytes >= FULL_BYTES;
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  push(item: T, bytes: number): void {
    this.#items.push({ item, bytes });
    this.#bytes += bytes;
    this.#wake?.();
  }

  /** The first end counts. Null: nothing went wrong. */
  end(error: Error | null): void {
    this.#end ??= { error };
    this.#wake?.();
    this.#makeRoom();
  }

  /** Resolves when it is not full, or at its end. */
  async room(): Promise<void> {
    while (this.isFull && this.#end === null) await new Promise<void>((resolve) => this.#hasRoom.push(resolve));
  }

  /** Null at the end. Throws what the queue was ended with. */
  async pull(): Promise<T | null> {
    while (this.#items.length === 0 && this.#end === null) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
    const first = this.#items.shift();
    if (first !== undefined) {
      this.#bytes -= first.bytes;
      if (!this.isFull) this.#makeRoom();
      return first.item;
    }
    if (this.#end?.error instanceof Error) throw this.#end.error;
    return null;
  }

  #makeRoom(): void {
    const waiting = this.#hasRoom;
    this.#hasRoom = [];
    for (const go of waiting) go();
  }
}
