import type { Admin } from 'kafkajs';
import type { TestBed } from './test-bed.ts';
import { eventually } from './until.ts';

const PATIENCE_MS = 60_000;

/** How many records are in some topics, by one connection that stays: for looking often, also while brokers fail. */
export class TopicEnds implements AsyncDisposable {
  readonly #bed: TestBed;
  readonly #topics: readonly string[];
  #admin: Admin | null = null;

  constructor(bed: TestBed, topics: readonly string[]) {
    this.#bed = bed;
    this.#topics = topics;
  }

  records(): Promise<number> {
    return eventually(() => this.#ask(), { withinMs: PATIENCE_MS, what: 'an answer of the brokers', everyMs: 100 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#admin?.disconnect();
  }

  async #ask(): Promise<number> {
    try {
      if (this.#admin === null) {
        this.#admin = this.#bed.kafka.admin();
        await this.#admin.connect();
      }
      let records = 0;
      for (const topic of this.#topics) {
        for (const { high } of await this.#admin.fetchTopicOffsets(topic)) records += Number(high);
      }
      return records;
    } catch (error) {
      await this.#admin?.disconnect();
      this.#admin = null;
      throw error;
    }
  }
}
