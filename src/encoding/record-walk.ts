import { BATCH_HEADER_BYTES } from './record-batch.ts';
import { varintLength, writeVarint } from './varint.ts';

const NOTHING = Buffer.alloc(0);

/**
 * Walks the records of a batch that is not compressed. One object for all of them: what it shows holds until the next
 * step. https://kafka.apache.org/documentation/#record
 */
export class RecordCursor {
  buffer: Buffer = NOTHING;
  /** The record is `buffer[begin, end)`, its length in front included. */
  begin = 0;
  end = 0;
  /** To the batch's timestamp. */
  timestampDeltaMs = 0;
  /** The key is `buffer[keyStart, keyEnd)`; -1: it is null. */
  keyStart = -1;
  keyEnd = -1;
  /** The first header's value is `buffer[headerStart, headerEnd)`; -1: it is null or there is no header. */
  headerStart = -1;
  headerEnd = -1;
  /** Behind the last record. */
  #stop = 0;
  #at = 0;
  #attributesAt = 0;
  #offsetAt = 0;
  #offsetEnd = 0;

  /** In front of the first record of `buffer[0, end)`. */
  over(buffer: Buffer, end: number): this {
    this.buffer = buffer;
    this.end = BATCH_HEADER_BYTES;
    this.#stop = end;
    return this;
  }

  /** False behind the last record. Throws a RangeError for what is no record. */
  next(): boolean {
    this.#at = this.begin = this.end;
    if (this.begin === this.#stop) return false;
    const length = this.#varint();
    this.#attributesAt = this.#at++;
    this.end = this.#attributesAt + length;
    this.timestampDeltaMs = this.#varlong();
    this.#offsetAt = this.#at;
    this.#varint();
    this.#offsetEnd = this.#at;
    const key = this.#varint();
    this.keyStart = key < 0 ? -1 : this.#at;
    this.keyEnd = key < 0 ? -1 : (this.#at += key);
    const value = this.#varint();
    if (value > 0) this.#at += value;
    this.#firstHeader();
    if (length < 0 || this.#at > this.end || this.end > this.#stop) throw new RangeError('not a record');
    return true;
  }

  /**
   * Moves the record to `at`, which is not behind its beginning, and gives it this offset, which is not beyond its own:
   * a smaller offset takes no more room. What has been walked over may be overwritten. Returns the offset behind it.
   */
  moveTo(at: number, offsetDelta: number): number {
    const { buffer, end } = this;
    const offsetAt = this.#offsetAt;
    const offsetEnd = this.#offsetEnd;
    const body = offsetAt - this.#attributesAt + varintLength(offsetDelta) + end - offsetEnd;
    let to = writeVarint(buffer, at, body);
    for (let from = this.#attributesAt; from < offsetAt; from++) buffer[to++] = buffer[from];
    to = writeVarint(buffer, to, offsetDelta);
    if (to !== offsetEnd) buffer.copyWithin(to, offsetEnd, end);
    return to + end - offsetEnd;
  }

  #firstHeader(): void {
    this.headerStart = this.headerEnd = -1;
    if (this.#varint() <= 0) return;
    const name = this.#varint();
    this.#at += name;
    const value = this.#varint();
    if (value < 0) return;
    this.headerStart = this.#at;
    this.headerEnd = this.#at += value;
  }

  #varint(): number {
    const { buffer } = this;
    let zigzag = 0;
    let shift = 0;
    let byte: number;
    do {
      byte = buffer[this.#at++];
      zigzag |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    return (zigzag >>> 1) ^ -(zigzag & 1);
  }

  /** A safe integer: what `writeVarlong` writes. */
  #varlong(): number {
    const { buffer } = this;
    const first = buffer[this.#at++];
    let magnitude = (first & 0x7f) >>> 1;
    let scale = 64;
    for (let byte = first; byte >= 0x80; scale *= 128) {
      byte = buffer[this.#at++];
      magnitude += (byte & 0x7f) * scale;
    }
    return (first & 1) === 0 ? magnitude : -magnitude - 1;
  }
}
