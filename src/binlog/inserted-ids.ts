import { Form } from '../model/row.ts';
import { RowReader } from './row-reader.ts';
import type { RowsEvent } from './rows-event.ts';

/** Least and greatest id in two halves, so that no bigint is made per row. */
interface Span {
  lowHigh: number;
  lowLow: number;
  highHigh: number;
  highLow: number;
}

/**
 * Which ids the rows that a transaction has inserted may have, in bounded memory: per outbox what lies between the
 * least and the greatest. Ids that are no integers may be any.
 */
export class InsertedIds {
  readonly #reader = new RowReader();
  readonly #spans = new Map<number, Span>();
  readonly #any = new Set<number>();

  /**
   * Takes the next event. False when it may change a row that was inserted before it. Throws a RangeError for images
   * that cannot be read.
   */
  follow(event: RowsEvent): boolean {
    const { change, plan, before, buffer, end, seconds } = event;
    let at = event.start;
    while (at < end) {
      const start = at;
      at = this.#reader.read(before ?? plan, buffer, at, end, seconds);
      if (change === 'insert') this.#add();
      else if (!(before ?? plan).holdsId || this.#mayHold()) return false;
      if (before !== null) at = this.#reader.read(plan, buffer, at, end, seconds);
      if (at === start) throw new RangeError('a row image without bytes');
    }
    return true;
  }

  #add(): void {
    const { outbox, idHigh, idLow, idBytes } = this.#reader.row;
    if (idBytes.form !== Form.Null) this.#any.add(outbox);
    const span = this.#spans.get(outbox);
    if (span === undefined) {
      this.#spans.set(outbox, { lowHigh: idHigh, lowLow: idLow, highHigh: idHigh, highLow: idLow });
      return;
    }
    if (isLess(idHigh, idLow, span.lowHigh, span.lowLow)) {
      span.lowHigh = idHigh;
      span.lowLow = idLow;
    }
    if (isLess(span.highHigh, span.highLow, idHigh, idLow)) {
      span.highHigh = idHigh;
      span.highLow = idLow;
    }
  }

  #mayHold(): boolean {
    const { outbox, idHigh, idLow } = this.#reader.row;
    const span = this.#spans.get(outbox);
    if (span === undefined) return false;
    if (this.#any.has(outbox)) return true;
    return !isLess(idHigh, idLow, span.lowHigh, span.lowLow) && !isLess(span.highHigh, span.highLow, idHigh, idLow);
  }
}

function isLess(aHigh: number, aLow: number, bHigh: number, bLow: number): boolean {
  return aHigh === bHigh ? aLow < bLow : aHigh < bHigh;
}
