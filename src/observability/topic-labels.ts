/** Topics beyond so many are counted together. */
const MOST_TOPICS = 100;
const OTHERS = '(others)';

/** Names of topics as labels, bounded: a topic may come out of a row. */
export class TopicLabels {
  readonly #known = new Set<string>();

  of(topic: string): string {
    if (this.#known.has(topic)) return topic;
    if (this.#known.size >= MOST_TOPICS) return OTHERS;
    this.#known.add(topic);
    return topic;
  }
}
