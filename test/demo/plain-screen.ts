import { clockTime, count, duration } from './format.ts';
import type { Figures, ResultLine, Screen, Tone } from './screen.ts';

const EVERY_MS = 1000;

/** Plain lines for pipes and files: ASCII, at most one line of figures a second, events as they come. */
export class PlainScreen implements Screen {
  readonly #write: (line: string) => void;
  #nextMs = EVERY_MS;

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  async step<T>(_doing: string, work: () => Promise<T>, done: (result: T) => string): Promise<T> {
    const startedMs = performance.now();
    const result = await work();
    this.#write(`${done(result)}, ${duration(performance.now() - startedMs)}`);
    return result;
  }

  open(): void {
    this.#write('');
  }

  event(elapsedMs: number, text: string, tone: Tone): void {
    this.#write(`${clockTime(elapsedMs)}  ${tone === 'bad' ? '!' : '*'} ${text}`);
  }

  figures(figures: Figures): void {
    if (figures.elapsedMs < this.#nextMs) return;
    this.#nextMs = (Math.floor(figures.elapsedMs / EVERY_MS) + 1) * EVERY_MS;
    const { elapsedMs, committed, delivered, waiting, oldestWaitMs, p50Ms, p99Ms } = figures;
    const oldest = waiting === 0 ? '' : ` (oldest ${duration(oldestWaitMs)})`;
    this.#write(
      `${clockTime(elapsedMs)}  committed ${count(committed)}  delivered ${count(delivered)}  ` +
        `waiting ${count(waiting)}${oldest}  latency p50 ${duration(p50Ms)}, p99 ${duration(p99Ms)}`,
    );
  }

  close(): void {
    // There is nothing to put back.
  }

  result(lines: readonly ResultLine[]): void {
    this.#write('');
    for (const { text } of lines) this.#write(text);
  }
}
