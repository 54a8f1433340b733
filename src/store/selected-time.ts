/** A zero date, one before 1970, or none: as the tail has it. */
const NO_TIME = -1;

/** `2026-11-30 01:02:03.456789`, taken as UTC, in whole milliseconds since the epoch. */
export function selectedTimeMs(text: Buffer | null): number {
  if (text === null) return NO_TIME;
  const [year, month, day, hours, minutes, seconds, fraction = ''] = String(text).split(/[-: .]/);
  if (Number(year) < 1970 || Number(month) === 0 || Number(day) === 0) return NO_TIME;
  const ms = Number(fraction.padEnd(3, '0').slice(0, 3));
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hours), Number(minutes), Number(seconds), ms);
}
