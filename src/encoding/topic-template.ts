import { Form, type Field } from '../model/row.ts';

/** A topic made of text and columns: `orders.{region}`. */
export class TopicTemplate {
  /** Names of the columns, each once. */
  readonly columns: readonly string[];
  /** Text, or the index of a column. */
  readonly #pieces: readonly (Buffer | number)[];

  constructor(template: string) {
    const columns: string[] = [];
    this.#pieces = template
      .split(/\{([^{}]+)\}/)
      .map((piece, n) => {
        if (n % 2 === 0) return Buffer.from(piece);
        if (!columns.includes(piece)) columns.push(piece);
        return columns.indexOf(piece);
      })
      .filter((piece) => typeof piece === 'number' || piece.length > 0);
    this.columns = columns;
  }

  /** Bytes of the topic's name; -1 when one of the columns is NULL. `parts` are the columns' values from `first` on. */
  measure(parts: readonly Field[], first: number): number {
    let bytes = 0;
    for (const piece of this.#pieces) {
      if (typeof piece !== 'number') {
        bytes += piece.length;
        continue;
      }
      const { form, start, end } = parts[first + piece];
      if (form === Form.Null) return -1;
      bytes += end - start;
    }
    return bytes;
  }

  /** Into `out`, which holds what `measure` said. */
  write(parts: readonly Field[], first: number, out: Buffer): void {
    let at = 0;
    for (const piece of this.#pieces) {
      if (typeof piece === 'number') {
        const { buffer, start, end } = parts[first + piece];
        for (let i = start; i < end; i++) out[at++] = buffer[i];
      } else {
        for (const byte of piece) out[at++] = byte;
      }
    }
  }
}
