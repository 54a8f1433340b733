/** The value that `part` (0 … 1) of the values do not exceed; null of none. */
export function percentile(values: readonly number[], part: number): number | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}
