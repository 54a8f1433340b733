import type { Colors } from 'picocolors/types.ts';
import { clockTime, count, duration } from './format.ts';
import type { Figures, PartState, Tone } from './screen.ts';
import { sparkline } from './sparkline.ts';

export interface BoardEvent {
  readonly atMs: number;
  readonly text: string;
  readonly tone: Tone;
}

export interface BoardView {
  readonly figures: Figures;
  readonly events: readonly BoardEvent[];
  /** p99 of each second so far. */
  readonly p99Ms: readonly (number | null)[];
  readonly columns: number;
  readonly rows: number;
}

const MARGIN = '  ';
const LABEL = 12;
const NUMBER = 9;
/** Lines other than events, and one that the cursor needs. */
const FIXED_LINES = 16;
const MAX_WIDTH = 96;
const WIDE = 74;

/** The whole board as text. The newest events are shown when not all fit. */
export function board(view: BoardView, colors: Colors): string {
  const { figures, events, p99Ms } = view;
  const width = Math.min(view.columns - 2 * MARGIN.length, MAX_WIDTH);
  const room = Math.max(3, view.rows - FIXED_LINES);
  const clip = (text: string): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text);
  const { committed, delivered, waiting, oldestWaitMs } = figures;
  const row = (label: string, value: string, note: string): string =>
    `${label.padEnd(LABEL)}${colors.bold(value.padStart(NUMBER))}   ${colors.dim(clip(note).slice(0, Math.max(0, width - LABEL - NUMBER - 3)))}`;
  const lines = [
    '',
    title(figures, width, colors),
    '',
    ...pipeline(figures, width < WIDE ? ' ▶ ' : '  ──▶  ', colors),
    '',
    row('committed', count(committed), 'events in MySQL, each in one transaction with its order'),
    row('delivered', count(delivered), 'of them read from Kafka by a plain consumer'),
    row('waiting', count(waiting), waiting === 0 ? 'nothing' : `the oldest for ${duration(oldestWaitMs)}`),
    '',
    row('latency', duration(figures.p50Ms), "half of the last second's events took at most this (p50)"),
    row('', duration(figures.p99Ms), '99 of 100 at most this (p99)'),
    `${'p99'.padEnd(LABEL)}${colors.cyan(sparkline(p99Ms.slice(LABEL - width)))}`,
    '',
    ...events.slice(-room).map(({ atMs, text, tone }) => {
      const time = clockTime(atMs);
      return `${colors.dim(time)}  ${painted(clip(text).slice(0, width - time.length - 2), tone, colors)}`;
    }),
  ];
  return lines.map((line) => `${MARGIN}${line}`).join('\n');
}

function title({ elapsedMs, plannedMs }: Figures, width: number, colors: Colors): string {
  const name = 'cdc-relay demo';
  const time = elapsedMs < plannedMs ? `${clockTime(elapsedMs)} of ${clockTime(plannedMs)}` : 'the last rows arrive';
  return `${colors.bold(name)}${colors.dim(time.padStart(width - name.length))}`;
}

/** The parts in a row, each with its state or its rate below. */
function pipeline(figures: Figures, arrow: string, colors: Colors): string[] {
  const parts: [name: string, below: string, state: PartState][] = [
    ['order service', `${count(figures.committedPerS)} /s`, 'up'],
    ['MySQL', 'up', 'up'],
    ['relay', figures.relay, figures.relay],
    ['Kafka', figures.kafka, figures.kafka],
    ['consumer', `${count(figures.deliveredPerS)} /s`, 'up'],
  ];
  const widths = parts.map(([name]) => Math.max(name.length, 8));
  const names = parts.map(([name, , state], i) => paintState(centred(name, widths[i]), state, colors, true));
  const below = parts.map(([, text, state], i) => paintState(centred(text, widths[i]), state, colors, false));
  return [names.join(colors.dim(arrow)), below.join(' '.repeat(arrow.length))];
}

function paintState(text: string, state: PartState, colors: Colors, isName: boolean): string {
  if (state === 'down') return colors.bold(colors.red(text));
  if (state === 'starting') return colors.yellow(text);
  return isName ? text : colors.green(text);
}

export function painted(text: string, tone: Tone, colors: Colors): string {
  if (tone === 'good') return colors.green(text);
  return tone === 'bad' ? colors.red(text) : text;
}

function centred(text: string, width: number): string {
  return text.padStart(Math.floor((width + text.length) / 2)).padEnd(width);
}
