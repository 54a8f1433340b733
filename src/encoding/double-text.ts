/**
 * A DOUBLE as the server prints it in SQL (`my_gcvt` of strings/dtoa.cc): the shortest digits that read back to the
 * same double. For 0.DDD x 10^point: plain notation where -14 <= point <= 15, or where a fraction is left; otherwise
 * D.DDe[-]N, without plus sign and padding. Unlike inside JSON, an integer has no `.0`.
 */
const MIN_PLAIN_POINT = -14;
const MAX_PLAIN_POINT = 15;

/** Most bytes of it. */
export const DOUBLE_TEXT_BYTES = 40;

export function doubleText(value: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa, exponent] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const point = value === 0 ? 1 : Number(exponent) + 1;
  if (point < MIN_PLAIN_POINT || (point > MAX_PLAIN_POINT && digits.length <= point)) {
    const fraction = digits.length === 1 ? '' : `.${digits.slice(1)}`;
    return `${sign}${digits[0]}${fraction}e${point - 1}`;
  }
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  if (digits.length <= point) return sign + digits.padEnd(point, '0');
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
