import { Presets, SingleBar } from 'cli-progress';
import { ageText, countText } from './text.ts';

const LINE_EVERY_MS = 5_000;
/** Steps of the bar: what is walked may be counted beyond 2^53. */
const STEPS = 1_000;
const NOTHING_YET = { rows: '0', rate: '0', left: '' };

/** What stands beside the bar is what people read: the bar takes what is left. */
const TEXT_COLUMNS = 60;
const MOST_BAR_COLUMNS = 40;
const LEAST_BAR_COLUMNS = 8;

/** How wide a bar may be beside a text of so many columns. */
export function barColumns(textColumns: number, columns = process.stderr.columns): number {
  return Math.max(LEAST_BAR_COLUMNS, Math.min(MOST_BAR_COLUMNS, columns - textColumns));
}

/** A bar on stderr. A process that ends beneath it gives the terminal back as it was: cursor, and lines that wrap. */
export class Bar {
  readonly #bar: SingleBar;
  readonly #end = (): void => this.#bar.stop();

  constructor(format: string, textColumns: number, total: number, shown: Readonly<Record<string, string>>) {
    const options = { format, barsize: barColumns(textColumns), stopOnComplete: false };
    this.#bar = new SingleBar(options, Presets.shades_classic);
    this.#bar.start(total, 0, shown);
    process.once('exit', this.#end);
  }

  update(done: number, shown: Readonly<Record<string, string>>, total?: number): void {
    if (total !== undefined) this.#bar.setTotal(total);
    this.#bar.update(done, shown);
  }

  stop(): void {
    process.off('exit', this.#end);
    this.#bar.stop();
  }
}

/** How far work is that removes rows: a bar on a terminal, else now and then a line. On stderr. */
export class Progress {
  readonly #note: (text: string) => void;
  readonly #bar: Bar | null;
  readonly #startedMs = performance.now();
  #toldMs = this.#startedMs;

  constructor(note: (text: string) => void, isQuiet: boolean) {
    this.#note = note;
    this.#bar =
      process.stderr.isTTY && !isQuiet
        ? new Bar('{bar}  {percentage} %  {rows} rows  {rate} rows/s{left}', TEXT_COLUMNS, STEPS, NOTHING_YET)
        : null;
  }

  /** `done` from 0 to 1; null where it is not known. */
  update(done: number | null, rows: number): void {
    const nowMs = performance.now();
    const rate = countText(Math.round((rows * 1000) / Math.max(1, nowMs - this.#startedMs)));
    const leftMs = done === null || done <= 0 ? null : ((nowMs - this.#startedMs) * (1 - done)) / done;
    const left = leftMs === null ? '' : `  ${ageText(leftMs)} left`;
    this.#bar?.update(Math.floor((done ?? 0) * STEPS), { rows: countText(rows), rate, left });
    if (this.#bar !== null || nowMs - this.#toldMs < LINE_EVERY_MS) return;
    this.#toldMs = nowMs;
    this.#note(`${done === null ? '' : `${Math.floor(done * 100)} %  `}${countText(rows)} rows  ${rate} rows/s`);
  }

  stop(): void {
    this.#bar?.stop();
  }
}
