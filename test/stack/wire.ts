/** Reads and writes the primitive types of Kafka's protocol (the encoding before the flexible versions). */
export class WireReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  int8(): number {
    return this.#buffer.readInt8(this.#step(1));
  }

  int16(): number {
    return this.#buffer.readInt16BE(this.#step(2));
  }

  int32(): number {
    return this.#buffer.readInt32BE(this.#step(4));
  }

  string(): string | null {
    const bytes = this.int16();
    return bytes < 0 ? null : this.#take(bytes).toString();
  }

  bytes(): Buffer {
    return this.#take(Math.max(0, this.int32()));
  }

  array<T>(item: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, item);
  }

  #take(bytes: number): Buffer {
    const at = this.#step(bytes);
    return this.#buffer.subarray(at, at + bytes);
  }

  #step(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    return at;
  }
}

export class WireWriter {
  readonly #parts: Buffer[] = [];

  int8(value: number): this {
    return this.#number(1, (buffer) => buffer.writeInt8(value));
  }

  int16(value: number): this {
    return this.#number(2, (buffer) => buffer.writeInt16BE(value));
  }

  int32(value: number): this {
    return this.#number(4, (buffer) => buffer.writeInt32BE(value));
  }

  int64(value: bigint): this {
    return this.#number(8, (buffer) => buffer.writeBigInt64BE(value));
  }

  string(value: string | null): this {
    if (value === null) return this.int16(-1);
    const bytes = Buffer.from(value);
    this.int16(bytes.length).#parts.push(bytes);
    return this;
  }

  bytes(value: Buffer): this {
    this.int32(value.length).#parts.push(value);
    return this;
  }

  array<T>(values: readonly T[], item: (value: T) => void): this {
    this.int32(values.length);
    for (const value of values) item(value);
    return this;
  }

  end(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #number(bytes: number, write: (buffer: Buffer) => void): this {
    const buffer = Buffer.alloc(bytes);
    write(buffer);
    this.#parts.push(buffer);
    return this;
  }
}
