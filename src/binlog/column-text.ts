import { writeDecimal } from '../encoding/packed-decimal.ts';

/** How a value of the log becomes the text that `CAST(… AS CHAR)` gives. */
export interface ColumnText {
  /** Most bytes of the text of a value of `bytes` bytes. */
  room(bytes: number): number;
  /** Writes the text of `source[start, end)`; returns the offset behind it. Throws a RangeError for what is no value. */
  write(out: Buffer, at: number, source: Buffer, start: number, end: number): number;
}

/** DECIMAL: precision and scale are the two bytes of its metadata. */
export function decimalText(metadata: number): ColumnText {
  const precision = metadata & 255;
  const scale = metadata >> 8;
  return {
    room: () => precision + 3,
    write: (out, at, source, start) => writeDecimal(out, at, source, start, precision - scale, scale),
  };
}

/** SET: a bit for each label, the first one lowest. */
export function setText(labels: readonly Buffer[]): ColumnText {
  const most = labels.reduce((sum, label) => sum + label.length + 1, 0);
  return {
    room: () => most,
    write(out, at, source, start, end) {
      const first = at;
      for (let bit = 0; bit < (end - start) * 8; bit++) {
        if (((source[start + (bit >> 3)] >> (bit & 7)) & 1) === 0) continue;
        if (bit >= labels.length) throw new RangeError('a label that its column does not have');
        if (at > first) out[at++] = 0x2c;
        labels[bit].copy(out, at);
        at += labels[bit].length;
      }
      return at;
    },
  };
}
