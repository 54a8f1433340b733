import { closeSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { z } from 'zod';

/** One line of the relay's JSON log. */
const logLine = z.looseObject({ level: z.string(), time: z.string(), event: z.string() });

export type LogLine = Readonly<z.output<typeof logLine>>;

const CHUNK_BYTES = 65_536;
const END_CHARACTERS = 3000;

/** Follows a log file that another process writes. Lines that are no JSON objects (a crash of Node) are kept as text. */
export class LogTail {
  readonly #file: string;
  readonly #lines: LogLine[] = [];
  readonly #decoder = new StringDecoder('utf8');
  #text = '';
  #unfinished = '';
  #offset = 0;

  constructor(file: string) {
    this.#file = file;
  }

  lines(): readonly LogLine[] {
    this.#read();
    return this.#lines;
  }

  end(): string {
    this.#read();
    return this.#text.slice(-END_CHARACTERS);
  }

  #read(): void {
    const descriptor = openSync(this.#file, 'r');
    try {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      for (let bytes: number; (bytes = readSync(descriptor, chunk, 0, CHUNK_BYTES, this.#offset)) > 0;) {
        this.#offset += bytes;
        this.#add(this.#decoder.write(chunk.subarray(0, bytes)));
      }
    } finally {
      closeSync(descriptor);
    }
  }

  #add(text: string): void {
    this.#text = (this.#text + text).slice(-2 * END_CHARACTERS);
    const lines = (this.#unfinished + text).split('\n');
    this.#unfinished = lines.pop()!;
    for (const line of lines) {
      const parsed = parse(line);
      if (parsed !== null) this.#lines.push(parsed);
    }
  }
}

function parse(line: string): LogLine | null {
  try {
    return logLine.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
