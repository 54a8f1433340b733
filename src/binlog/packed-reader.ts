import { u64 } from './little-endian.ts';

/** The protocol's length-encoded integers, with bounds. */
export class PackedReader {
  readonly #buffer: Buffer;
  readonly #end: number;
  at: number;

  constructor(buffer: Buffer, at: number, end: number) {
    this.#buffer = buffer;
    this.at = at;
    this.#end = end;
  }

  get left(): number {
    return this.#end - this.at;
  }

  /** Passes `length` bytes and gives where they begin. */
  skip(length: number): number {
    const begin = this.at;
    if (!(length >= 0 && length <= this.left)) throw new RangeError('a field reaches beyond its event');
    this.at += length;
    return begin;
  }

  byte(): number {
    return this.#buffer[this.skip(1)];
  }

  integer(): number {
    const first = this.byte();
    if (first < 251) return first;
    if (first === 252) return this.#little(2);
    if (first === 253) return this.#little(3);
    if (first === 254) return u64(this.#buffer, this.skip(8));
    throw new RangeError('a packed integer begins with a reserved byte');
  }

  #little(bytes: number): number {
    return this.#buffer.readUIntLE(this.skip(bytes), bytes);
  }
}
