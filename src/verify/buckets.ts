import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What is gathered of one bucket before it is written down: at most this much a bucket is in memory. */
const CHUNK_BYTES = 32 * 1024;

/** What does not fit into memory cannot be kept: no temporary directory, or a full one. */
export class SpillError extends Error {
  override readonly name = 'SpillError';
  /** As the system calls it: ENOSPC, EROFS … */
  readonly code: string;

  constructor(cause: unknown) {
    super('writing what does not fit into memory', { cause });
    this.code = (cause as NodeJS.ErrnoException).code ?? 'unknown';
  }
}

/**
 * A file for what does not fit into memory. Made when it is first needed, and nameless from then on: it is gone with
 * the process, whatever ends it.
 */
export class SpillFile {
  #file: number | null = null;
  #end = 0;

  /** Returns where the bytes are. Throws a `SpillError`. */
  write(bytes: Buffer): number {
    const at = this.#end;
    try {
      this.#file ??= namelessFile();
      for (let done = 0; done < bytes.length;) {
        done += writeSync(this.#file, bytes, done, bytes.length - done, at + done);
      }
    } catch (error) {
      throw new SpillError(error);
    }
    this.#end += bytes.length;
    return at;
  }

  read(into: Buffer, at: number): void {
    for (let done = 0; done < into.length;) {
      const count = readSync(this.#file!, into, done, into.length - done, at + done);
      if (count === 0) throw new Error('the spill file is shorter than what was written');
      done += count;
    }
  }

  get bytes(): number {
    return this.#end;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

function namelessFile(): number {
  const directory = mkdtempSync(join(tmpdir(), 'cdc-relay-verify-'));
  try {
    return openSync(join(directory, 'spill'), 'w+', 0o600);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

interface Bucket {
  chunk: Buffer | null;
  used: number;
  /** Chunks in the file. */
  readonly written: number[];
}

/** Entries of one size, kept apart by a number: what has one number can be taken out together. */
export class Buckets {
  readonly #spill: SpillFile;
  readonly #entryBytes: number;
  readonly #chunkBytes: number;
  readonly #buckets: Bucket[];

  constructor(spill: SpillFile, entryBytes: number, count: number) {
    this.#spill = spill;
    this.#entryBytes = entryBytes;
    this.#chunkBytes = Math.floor(CHUNK_BYTES / entryBytes) * entryBytes;
    this.#buckets = Array.from({ length: count }, () => ({ chunk: null, used: 0, written: [] }));
  }

  /** The entry is copied. */
  add(bucket: number, entry: Buffer): void {
    const into = this.#buckets[bucket];
    into.chunk ??= Buffer.allocUnsafe(this.#chunkBytes);
    entry.copy(into.chunk, into.used, 0, this.#entryBytes);
    into.used += this.#entryBytes;
    if (into.used < this.#chunkBytes) return;
    into.written.push(this.#spill.write(into.chunk));
    into.used = 0;
  }

  /** All entries of one bucket, in the order in which they came; the bucket is empty then. */
  take(bucket: number): Buffer {
    const { chunk, used, written } = this.#buckets[bucket];
    const all = Buffer.allocUnsafe(written.length * this.#chunkBytes + used);
    written.forEach((at, n) => {
      this.#spill.read(all.subarray(n * this.#chunkBytes, (n + 1) * this.#chunkBytes), at);
    });
    if (used > 0) chunk!.copy(all, written.length * this.#chunkBytes, 0, used);
    this.#buckets[bucket] = { chunk: null, used: 0, written: [] };
    return all;
  }
}
