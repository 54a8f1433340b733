const BARS = '▁▂▃▄▅▆▇█';
/** From 1 ms to 10 s: four decades. */
const DECADES = 4;

/** Latencies as small bars on a logarithmic scale, 1 ms to 10 s; null is a gap: nothing arrived. */
export function sparkline(valuesMs: readonly (number | null)[]): string {
  return valuesMs.map((ms) => (ms === null ? ' ' : BARS[level(ms)])).join('');
}

function level(ms: number): number {
  const part = Math.log10(Math.max(1, ms)) / DECADES;
  return Math.min(BARS.length - 1, Math.floor(part * BARS.length));
}
