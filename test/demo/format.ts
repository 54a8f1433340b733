const GROUPED = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export function count(value: number): string {
  return GROUPED.format(value);
}

/** `1.9 ms`, `240 ms`, `1.2 s`, `-` for none. */
export function duration(ms: number | null): string {
  if (ms === null) return '-';
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

/** `1 row`, `113 rows`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** `0:04`: minutes and seconds of the demo. */
export function clockTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
