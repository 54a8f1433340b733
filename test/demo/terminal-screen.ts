import { createLogUpdate } from 'log-update';
import type { Colors } from 'picocolors/types.ts';
import { sayThrough } from '../stack/progress.ts';
import { board, type BoardEvent, painted } from './board.ts';
import { clockTime, duration } from './format.ts';
import type { Figures, ResultLine, Screen, Tone } from './screen.ts';

const ALTERNATE_SCREEN = '\u001B[?1049h\u001B[H\u001B[2J';
const NORMAL_SCREEN = '\u001B[?1049l';
const STEP_EVERY_MS = 100;

/** A terminal: steps with running seconds, then a board over the whole screen, then the result below the steps. */
export class TerminalScreen implements Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #colors: Colors;
  readonly #draw: ReturnType<typeof createLogUpdate>;
  readonly #steps = new Map<string, number>();
  readonly #events: BoardEvent[] = [];
  readonly #p99Ms: (number | null)[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isOpen = false;
  #figures: Figures | null = null;
  readonly #redraw = (): void => {
    this.#out.write('\u001B[H\u001B[2J');
    this.#draw.done();
    this.#drawBoard();
  };

  constructor(out: NodeJS.WriteStream, colors: Colors) {
    this.#out = out;
    this.#colors = colors;
    this.#draw = createLogUpdate(out);
    sayThrough((line) => this.#persist(this.#colors.dim(`  ${line}`)));
  }

  async step<T>(doing: string, work: () => Promise<T>, done: (result: T) => string): Promise<T> {
    const startedMs = performance.now();
    this.#steps.set(doing, startedMs);
    this.#timer ??= setInterval(() => this.#drawSteps(), STEP_EVERY_MS);
    try {
      const result = await work();
      this.#endStep(doing);
      const took = this.#colors.dim(duration(performance.now() - startedMs));
      this.#persist(`  ${this.#colors.green('✓')} ${done(result)}  ${took}`);
      return result;
    } finally {
      this.#endStep(doing);
    }
  }

  open(): void {
    this.#draw.clear();
    this.#draw.done();
    this.#out.write(ALTERNATE_SCREEN);
    this.#isOpen = true;
    this.#out.on('resize', this.#redraw);
  }

  event(elapsedMs: number, text: string, tone: Tone): void {
    this.#events.push({ atMs: elapsedMs, text, tone });
    this.#drawBoard();
  }

  figures(figures: Figures): void {
    const second = Math.floor(figures.elapsedMs / 1000);
    if (second > this.#p99Ms.length) this.#p99Ms.push(figures.p99Ms);
    this.#figures = figures;
    this.#drawBoard();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#out.off('resize', this.#redraw);
      this.#draw.done();
      this.#out.write(NORMAL_SCREEN);
    } else {
      this.#draw.done();
    }
  }

  result(lines: readonly ResultLine[]): void {
    this.close();
    const { dim } = this.#colors;
    const past = this.#events.map(({ atMs, text, tone }) => {
      return `  ${dim(clockTime(atMs))}  ${painted(text, tone, this.#colors)}`;
    });
    const shown = lines.map(({ text, tone }) => painted(text, tone, this.#colors));
    this.#out.write(`\n${[...past, '', ...shown].join('\n')}\n`);
  }

  #drawBoard(): void {
    if (!this.#isOpen || this.#figures === null) return;
    const { columns, rows } = this.#out;
    const view = { figures: this.#figures, events: this.#events, p99Ms: this.#p99Ms, columns, rows };
    this.#draw(board(view, this.#colors));
  }

  #drawSteps(): void {
    const nowMs = performance.now();
    const lines = [...this.#steps].map(
      ([doing, startedMs]) => `  ${this.#colors.dim('·')} ${doing} … ${duration(nowMs - startedMs)}`,
    );
    this.#draw(lines.join('\n'));
  }

  #endStep(doing: string): void {
    this.#steps.delete(doing);
    if (this.#steps.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.#draw.clear();
  }

  #persist(line: string): void {
    this.#draw.persist(line);
  }
}
