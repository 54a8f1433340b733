import type { SealedBatch } from '../model/publisher.ts';

interface Strike {
  hungUp: number;
  odd: number;
  uncertain: boolean;
}

/** What has befallen bytes that were sent more than once. Nothing is kept of bytes that nobody holds any more. */
export class Strikes {
  readonly #records = new WeakMap<Buffer, Strike>();

  /** A send has ended uncertain: they may be in the topic. */
  mayBeThere({ bytes }: SealedBatch): boolean {
    return this.#records.get(bytes)?.uncertain === true;
  }

  noteUncertain(batch: SealedBatch): void {
    this.#of(batch).uncertain = true;
  }

  /** How often the broker has closed the connection on them. */
  hungUp({ bytes }: SealedBatch): number {
    return this.#records.get(bytes)?.hungUp ?? 0;
  }

  /** Returns the count with this one. */
  noteHungUp(batch: SealedBatch): number {
    return ++this.#of(batch).hungUp;
  }

  /** The broker's answer may be an accident. Returns how many of these there were. */
  noteOdd(batch: SealedBatch): number {
    return ++this.#of(batch).odd;
  }

  forget({ bytes }: SealedBatch): void {
    this.#records.delete(bytes);
  }

  #of({ bytes }: SealedBatch): Strike {
    let record = this.#records.get(bytes);
    if (record === undefined) this.#records.set(bytes, (record = { hungUp: 0, odd: 0, uncertain: false }));
    return record;
  }
}
