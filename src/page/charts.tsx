import type { HistoryView } from '../http/history-view.ts';
import { Chart } from './chart.tsx';
import { ageText, countText } from './words.ts';

/** 1, 2, 5, 10 … */
const ROUND = Array.from({ length: 7 }, (_, n) => [1, 2, 5].map((digit) => digit * 10 ** n)).flat();
const DURATIONS = [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400].map(
  (seconds) => seconds * 1_000,
);
const NONE: HistoryView = { version: 1, stepMs: 5_000, points: [] };

interface Props {
  readonly history: HistoryView | null;
  readonly aheadMs: number;
}

export function Charts({ history, aheadMs }: Props) {
  const { points, stepMs } = history ?? NONE;
  const isStuck = (state: string): boolean => state === 'STUCK' || state === 'UNKNOWN';
  return (
    <section aria-labelledby="charts-title">
      <h2 id="charts-title">Last 15 minutes</h2>
      <div class="charts">
        <Chart
          title="Rate"
          unit=" rows/s"
          color="--rate"
          stepMs={stepMs}
          aheadMs={aheadMs}
          atLeast={10}
          steps={ROUND}
          text={(value) => countText(Math.round(value))}
          points={points.map(({ atMs, rows, state }) => ({
            ...{ atMs, value: (rows * 1_000) / stepMs, isStuck: isStuck(state) },
          }))}
        />
        <Chart
          title="Lag"
          unit=""
          color="--lag"
          stepMs={stepMs}
          aheadMs={aheadMs}
          atLeast={2_000}
          steps={DURATIONS}
          text={(value) => (value === 0 ? '0 s' : ageText(value))}
          points={points.map(({ atMs, lagMs, state }) => ({ atMs, value: lagMs, isStuck: isStuck(state) }))}
        />
      </div>
    </section>
  );
}
