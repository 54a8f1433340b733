/** One piece of work at a time, in the order asked for. */
export class Turns {
  /** Settles with the last piece; never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
