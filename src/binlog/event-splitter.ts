import { HEADER_BYTES, SIZE_AT } from './event-header.ts';
import { u32 } from './little-endian.ts';

/** No event of a server is larger: it was one packet to be written. */
const LARGEST_EVENT_BYTES = 1024 * 1024 * 1024;

/** One event, `start` at its header; it has no checksum. */
export type TakeEvent = (buffer: Buffer, start: number, end: number) => void;

/** Events that lie one behind the other, out of pieces that are cut anywhere. */
export class EventSplitter {
  readonly #take: TakeEvent;
  /** Of an event that the pieces so far have not completed. */
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(take: TakeEvent) {
    this.#take = take;
  }

  /** The buffer is kept. Throws a RangeError for what cannot be an event. */
  push(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      if (this.#heldBytes > 0) {
        at = this.#complete(piece, at);
        continue;
      }
      const left = piece.length - at;
      if (left < HEADER_BYTES || sizeOf(piece, at) > left) {
        this.#hold(piece.subarray(at));
        return;
      }
      const end = at + sizeOf(piece, at);
      this.#take(piece, at, end);
      at = end;
    }
  }

  /** Throws a RangeError when the last event is not whole. */
  end(): void {
    if (this.#heldBytes > 0) throw new RangeError('the last event of a payload is cut off');
  }

  /** Begins anew, whatever was held. */
  reset(): void {
    this.#held = [];
    this.#heldBytes = 0;
  }

  /** Adds what the held event lacks; gives where the next one begins. */
  #complete(piece: Buffer, at: number): number {
    if (this.#heldBytes < HEADER_BYTES) {
      const header = Math.min(piece.length, at + HEADER_BYTES - this.#heldBytes);
      this.#hold(piece.subarray(at, header));
      if (this.#heldBytes < HEADER_BYTES) return header;
      this.#held = [Buffer.concat(this.#held)];
      at = header;
    }
    const size = sizeOf(this.#held[0], 0);
    const end = Math.min(piece.length, at + size - this.#heldBytes);
    if (end > at) this.#hold(piece.subarray(at, end));
    if (this.#heldBytes === size) {
      const event = Buffer.concat(this.#held);
      this.#held = [];
      this.#heldBytes = 0;
      this.#take(event, 0, size);
    }
    return end;
  }

  #hold(bytes: Buffer): void {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
  }
}

function sizeOf(buffer: Buffer, at: number): number {
  const size = u32(buffer, at + SIZE_AT);
  if (size < HEADER_BYTES || size > LARGEST_EVENT_BYTES) throw new RangeError('an event of an impossible size');
  return size;
}
