/** Numbers, sizes and ages as people read them: units, thousands separators, two parts at the most. */

export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];

export function bytesText(bytes: number): string {
  let value = bytes;
  let size = 0;
  while (value >= 1000 && size < SIZES.length - 1) {
    value /= 1000;
    size++;
  }
  return `${value >= 100 || size === 0 ? Math.round(value) : value.toFixed(1)} ${SIZES[size]}`;
}

export function ageText(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * Text that somebody else wrote, safe on a terminal: control characters, and those that change the direction of what
 * follows, as escapes. `ascii`: everything beyond ASCII too, for pipes.
 */
export function escapedText(text: string, ascii = !process.stdout.isTTY): string {
  const escape = (character: string): string => {
    const code = character.codePointAt(0)!;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  };
  const unsafe = text.replaceAll(/\\|\p{Cc}|\p{Cf}|\p{Cs}|\p{Co}|\p{Cn}|[\u2028\u2029]/gu, (character) =>
    character === '\\' ? '\\\\' : escape(character),
  );
  return ascii ? unsafe.replaceAll(/[^\x20-\x7e]/gu, escape) : unsafe;
}

/** `3 rows`. */
export function rowsText(count: number): string {
  return `${countText(count)} ${count === 1 ? 'row' : 'rows'}`;
}

/** As much of a text as a terminal has room for, from the top: what matters most stands there. Lines break at its edge. */
export function topOf(text: string, columns: number, rows: number): string {
  const lines = text.split('\n');
  const kept: string[] = [];
  let left = rows;
  for (const line of lines) {
    const height = Math.max(1, Math.ceil(line.length / columns));
    const isLast = kept.length === lines.length - 1;
    // The row behind it is for the sign that there is more.
    if (height > (isLast ? left : left - 1)) return [...kept, '…'].join('\n');
    kept.push(line);
    left -= height;
  }
  return text;
}
