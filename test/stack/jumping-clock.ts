import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CliOptions } from './relay-process.ts';
import { removeDirectory, temporaryDirectory } from './ward.ts';

const PRELOAD = fileURLToPath(new URL('jumping-clock.mjs', import.meta.url));

/** A wall clock for relays that can be set, as an administrator or a time server sets one. */
export class JumpingClock implements AsyncDisposable {
  readonly #directory: string;
  readonly #file: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#file = join(directory, 'off-ms');
    this.set(0);
  }

  static async create(): Promise<JumpingClock> {
    return new JumpingClock(await temporaryDirectory());
  }

  /** Off by so much from the time that it is, for every relay that has it. */
  set(offMs: number): void {
    writeFileSync(this.#file, String(offMs));
  }

  /** What a relay with this clock is started with. */
  get options(): Omit<CliOptions, 'config'> {
    return { nodeFlags: ['--import', PRELOAD], env: { CDC_RELAY_TEST_CLOCK: this.#file } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeDirectory(this.#directory);
  }
}
