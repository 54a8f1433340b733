/** One event of the order service, from the statement that wrote it to the consumer that received it. */
export interface Entry {
  /** The idempotency key as UUID text. */
  readonly id: string;
  readonly topic: string;
  readonly key: string;
  /** Place among the events of its order, given under that order's row lock: commit order, without gaps. */
  readonly sequence: number;
  /** `performance.now()`; NaN until then. */
  committedMs: number;
  receivedMs: number;
}

/** From the commit's answer to the consumer. */
export interface Sample {
  readonly committedMs: number;
  readonly receivedMs: number;
  readonly latencyMs: number;
}

/** What the order service knows of its events. The audit compares it with MySQL and with Kafka. */
export class Ledger {
  readonly #entries = new Map<string, Entry>();
  readonly #rolledBack = new Set<string>();
  /** Committed and not received, oldest commit first. */
  readonly #waiting = new Set<Entry>();
  readonly samples: Sample[] = [];
  committed = 0;

  get delivered(): number {
    return this.samples.length;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get rolledBack(): number {
    return this.#rolledBack.size;
  }

  /** Before the commit is asked for: the consumer may be faster than the answer. */
  begun(entries: readonly Entry[]): void {
    for (const entry of entries) this.#entries.set(entry.id, entry);
  }

  hasCommitted(entries: readonly Entry[], nowMs: number): void {
    for (const entry of entries) {
      entry.committedMs = nowMs;
      this.committed++;
      if (Number.isNaN(entry.receivedMs)) this.#waiting.add(entry);
      else this.#sample(entry);
    }
  }

  hasRolledBack(ids: readonly string[]): void {
    for (const id of ids) this.#rolledBack.add(id);
  }

  /** A record with this id has arrived, for the first time or again. */
  received(id: string, nowMs: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || !Number.isNaN(entry.receivedMs)) return;
    entry.receivedMs = nowMs;
    if (this.#waiting.delete(entry)) this.#sample(entry);
  }

  entry(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  committedIds(): string[] {
    return [...this.#entries.values()].filter((entry) => !Number.isNaN(entry.committedMs)).map(({ id }) => id);
  }

  /** How long the event that waits longest has waited; 0 when none waits. */
  oldestWaitMs(nowMs: number): number {
    for (const entry of this.#waiting) return nowMs - entry.committedMs;
    return 0;
  }

  #sample({ committedMs, receivedMs }: Entry): void {
    this.samples.push({ committedMs, receivedMs, latencyMs: Math.max(0, receivedMs - committedMs) });
  }
}
