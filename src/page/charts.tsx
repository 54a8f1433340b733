import type { HistoryView } from '../http/history-view.ts';
import { Chart } from './chart.tsx';
import { ageText, countText } from './words.ts';

const NONE: HistoryView = { version: 1, stepMs: 5_000, points: [] };

export function Charts({ history }: { readonly history: HistoryView | null }) {
  const { points, stepMs } = history ?? NONE;
  const isStuck = (state: string): boolean => state === 'STUCK' || state === 'UNKNOWN';
  return (
    <section aria-labelledby="charts-title">
      <h2 id="charts-title">Last 15 minutes</h2>
      <div class="charts">
        <Chart
          title="Rate"
          unit="rows/s"
          color="--rate"
          stepMs={stepMs}
          atLeast={10}
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
          atLeast={2_000}
          text={(value) => (value === 0 ? '0 s' : ageText(value))}
          points={points.map(({ atMs, lagMs, state }) => ({ atMs, value: lagMs, isStuck: isStuck(state) }))}
        />
      </div>
    </section>
  );
}
