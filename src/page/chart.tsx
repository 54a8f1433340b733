import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { useMedia, useWidth } from './use-view.ts';
import { nowAndMost, utcText } from './words.ts';

export interface ChartPoint {
  readonly atMs: number;
  /** Null: nobody knows. */
  readonly value: number | null;
  readonly isStuck: boolean;
}

interface Props {
  readonly title: string;
  /** Behind each value in words; with a space before it. */
  readonly unit: string;
  readonly color: string;
  readonly points: readonly ChartPoint[];
  /** Points are so far apart; where one is missing there is a gap. */
  readonly stepMs: number;
  /** How far the clock that the points are by is ahead of this machine's. */
  readonly aheadMs: number;
  readonly text: (value: number) => string;
  /** The scale ends there at the least. */
  readonly atLeast: number;
  /** What may lie between two lines of its grid. */
  readonly steps: number[];
}

const HEIGHT_PX = 168;
/** Half a time of the day: what is centred on the last one is not to be cut. */
const HALF_CLOCK_PX = 26;
const VALUES_PX = 62;
const SPAN_MS = 15 * 60_000;
/** Of a relay that has just begun there is little to show. */
const LEAST_SPAN_MS = 60_000;

/** The last 15 minutes of one number; times in which the relay was stuck are shaded. */
export function Chart({ title, unit, color, points, stepMs, aheadMs, text, atLeast, steps }: Props) {
  const [width, measured] = useWidth();
  const isDark = useMedia('(prefers-color-scheme: dark)');
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shaded = useRef(points);
  const [at, setAt] = useState<number | null>(null);
  shaded.current = points;

  useEffect(() => {
    if (width === 0 || place.current === null) return;
    const style = getComputedStyle(place.current);
    const of = (name: string): string => style.getPropertyValue(name).trim();
    const font = `11px ${style.fontFamily}`;
    const axis = { stroke: of('--quiet'), font, ticks: { show: false } };
    const made = new uPlot(
      {
        ...{ width, height: HEIGHT_PX, legend: { show: false }, padding: [8, HALF_CLOCK_PX, 0, 0] },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: {
          x: { time: true },
          y: { range: (_, __, most) => [0, Math.max(atLeast, most * 1.1)] },
        },
        axes: [
          { ...axis, space: 60, size: 26, grid: { show: false }, values: clockTexts },
          {
            ...axis,
            size: VALUES_PX,
            space: 34,
            incrs: steps,
            grid: { stroke: of('--line'), width: 1 },
            values: (_, all) => all.map(text),
          },
        ],
        series: [
          {},
          {
            stroke: of(color),
            width: 2,
            fill: `${of(color)}22`,
            points: { show: ({ data: [times] }) => times.length < 4 },
          },
        ],
        hooks: {
          drawClear: [(self) => shade(self, shaded.current, stepMs, of('--bad-soft'))],
          setCursor: [({ cursor: { idx } }) => setAt(idx ?? null)],
        },
      },
      dataOf(shaded.current, stepMs),
      place.current,
    );
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, isDark]);

  const data = dataOf(points, stepMs);
  useEffect(() => {
    plot.current?.setData(data, false);
    const now = Date.now() + aheadMs;
    const knownMs = now - (points.at(0)?.atMs ?? now) + stepMs;
    const spanMs = Math.min(SPAN_MS, Math.max(LEAST_SPAN_MS, knownMs));
    // The other scale follows.
    plot.current?.setScale('x', { min: (now - spanMs) / 1_000, max: now / 1_000 });
  }, [points, aheadMs, width, isDark]);

  const hovered = at === null ? null : ((data[1][at] as number | null | undefined) ?? null);
  const inWords = (value: number): string => `${text(value)}${unit}`;
  const said = nowAndMost(
    points.map(({ value }) => value),
    inWords,
  );
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <p aria-hidden={at !== null}>
          {at !== null && hovered !== null ? `${inWords(hovered)} at ${utcText(data[0][at] * 1_000)}` : said}
        </p>
      </figcaption>
      <div ref={measured}>
        <div ref={place} role="img" aria-label={`${title} over the last 15 minutes: ${said}`} class="plot" />
      </div>
    </figure>
  );
}

/**
 * Times of the day in UTC, with seconds where the grid is finer than a minute. The first one is left out where it would
 * touch the values beside it.
 */
function clockTexts({ scales, width }: uPlot, splits: number[], _: number, __: number, incrSeconds: number): string[] {
  const { min = 0, max = 1 } = scales['x'];
  const first = min + ((max - min) * HALF_CLOCK_PX) / (width - VALUES_PX - HALF_CLOCK_PX);
  return splits.map((seconds) =>
    seconds < first ? '' : new Date(seconds * 1_000).toISOString().slice(11, incrSeconds < 60 ? 19 : 16),
  );
}

function dataOf(points: readonly ChartPoint[], stepMs: number): [number[], (number | null)[]] {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const { atMs, value } of points) {
    const before = times.at(-1);
    if (before !== undefined && atMs - before * 1_000 > 2.5 * stepMs) {
      times.push((atMs - stepMs) / 1_000);
      values.push(null);
    }
    times.push(atMs / 1_000);
    values.push(value);
  }
  return [times, values];
}

function shade(plot: uPlot, points: readonly ChartPoint[], stepMs: number, color: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = color;
  for (const { atMs, isStuck } of points) {
    if (!isStuck) continue;
    const from = Math.max(bbox.left, plot.valToPos((atMs - stepMs) / 1_000, 'x', true));
    const to = Math.min(bbox.left + bbox.width, plot.valToPos(atMs / 1_000, 'x', true));
    if (to > from) ctx.fillRect(from, bbox.top, to - from + 1, bbox.height);
  }
  ctx.restore();
}
