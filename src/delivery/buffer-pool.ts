/**
 * Buffers for batches under construction and on their way. What the lanes hold together never exceeds `maxBytes`: no
 * free buffer means that the source waits. Size classes let thousands of lanes with little to say fit in the pool.
 *
 * Invariant: `takenBytes` = sum of the buffers handed out and not given back; taken + idle <= `maxBytes`.
 */
export class BufferPool {
  readonly maxBytes: number;
  readonly largestBytes: number;
  readonly #classes: readonly SizeClass[];
  #takenBytes = 0;
  #idleBytes = 0;
  #waiting: (() => void)[] = [];
  #oversize: Buffer | null = null;

  constructor(maxBytes: number, largestBytes: number) {
    this.maxBytes = maxBytes;
    this.largestBytes = largestBytes;
    const sizes = [largestBytes];
    while (sizes[0] / GROWTH >= SMALLEST_BYTES) sizes.unshift(Math.floor(sizes[0] / GROWTH));
    this.#classes = sizes.map((bytes) => ({ bytes, idle: [] }));
  }

  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** A buffer of the smallest class with at least `bytes` bytes; null when the pool is exhausted or has no such class. */
  take(bytes: number): Buffer | null {
    for (const size of this.#classes) {
      if (size.bytes < bytes) continue;
      const buffer = size.idle.pop();
      if (buffer !== undefined) {
        this.#idleBytes -= size.bytes;
        this.#takenBytes += size.bytes;
        return buffer;
      }
      return this.#allocate(size);
    }
    return null;
  }

  /** A buffer of its own for a record larger than any class, beside the pool's bound; one at a time. */
  takeOversize(bytes: number): Buffer | null {
    if (this.#oversize !== null) return null;
    this.#oversize = Buffer.allocUnsafeSlow(bytes);
    return this.#oversize;
  }

  give(buffer: Buffer): void {
    if (buffer === this.#oversize) {
      this.#oversize = null;
    } else {
      const size = this.#classes.find((candidate) => candidate.bytes === buffer.length);
      if (size === undefined) throw new RangeError(`a buffer of ${buffer.length} bytes is not of this pool`);
      size.idle.push(buffer);
      this.#idleBytes += size.bytes;
      this.#takenBytes -= size.bytes;
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  /** Resolves when a buffer has been given back. */
  returned(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #allocate(size: SizeClass): Buffer | null {
    // Idle buffers of other classes make room first: the bound is on bytes, not on buffers of a class.
    for (const other of this.#classes) {
      while (this.#takenBytes + this.#idleBytes + size.bytes > this.maxBytes && other.idle.length > 0) {
        other.idle.pop();
        this.#idleBytes -= other.bytes;
      }
    }
    if (this.#takenBytes + this.#idleBytes + size.bytes > this.maxBytes) return null;
    this.#takenBytes += size.bytes;
    // Slow: never a slice of Node's shared pool, which would stay pinned.
    return Buffer.allocUnsafeSlow(size.bytes);
  }
}

interface SizeClass {
  readonly bytes: number;
  readonly idle: Buffer[];
}

const SMALLEST_BYTES = 16 * 1024;
const GROWTH = 4;
