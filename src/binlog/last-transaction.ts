import type { Position } from '../model/position.ts';
import type { Landmark } from '../model/source.ts';
import type { GroupStart } from './gtid-event.ts';

/** The last transaction that the stream has seen, as numbers: there may be 100,000 a second. */
export class LastTransaction {
  #isNew = false;
  #file = '';
  #end = 0;
  #begin = 0;
  #sid: string | null = null;
  #gno = 0;
  #commitMicros = 0;

  note({ sid, gno, commitMicros, file, begin }: GroupStart, end: Position): void {
    this.#isNew = true;
    this.#file = end.file;
    this.#end = end.offset;
    this.#begin = file === end.file ? begin : -1;
    this.#sid = sid;
    this.#gno = gno;
    this.#commitMicros = commitMicros;
  }

  /** Null: none since it was asked for last. */
  take(): Landmark | null {
    if (!this.#isNew) return null;
    this.#isNew = false;
    return {
      end: { file: this.#file, offset: this.#end },
      beginOffset: this.#begin,
      gtid: this.#sid === null ? null : { sid: this.#sid, gno: this.#gno },
      commitMicros: this.#commitMicros,
    };
  }
}
