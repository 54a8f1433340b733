import type { Log } from '../model/log.ts';
import type { KnownSecrets, SecretFile } from '../model/secret.ts';
import { SECRET_KEYS } from './schema.ts';
import type { FileValue } from './value-file.ts';

/** A server and the file of its client's secret are not changed at the same moment: for so long a refusal may pass. */
export const ROTATION_MS = 600_000;

/** Of one file: a token may be written every few minutes for months. */
const REMEMBERED = 8;

/** What must not be printed, and where it is read anew. */
export class Secrets implements KnownSecrets {
  readonly #fixed: readonly string[];
  readonly #files: { file: WatchedFile; secretsIn: SecretsIn }[] = [];
  #log: Log | null = null;
  revision = 0;

  constructor(fixed: readonly string[]) {
    this.#fixed = fixed;
  }

  values(): readonly string[] {
    const read = this.#files.flatMap(({ file, secretsIn }) => file.remembered.flatMap(secretsIn));
    return [...new Set([...this.#fixed, ...read])];
  }

  /** `key`: where the file is named, such as `mysql.passwordFile`. Without `secretsIn` the whole of it is one, or nothing. */
  file(key: string, value: string, look: () => FileValue, secretsIn = secretsUnder(key)): SecretFile {
    const file = new WatchedFile(value, look, {
      changed: () => {
        this.revision++;
        this.#log?.info('secret-read-anew', { key });
      },
      unreadable: (problem) =>
        this.#log?.warn('secret-unreadable', { key, problem, effect: 'the value that was read last is used' }),
    });
    this.#files.push({ file, secretsIn });
    return file;
  }

  /** From now on what happens to the files is told. */
  tellTo(log: Log): void {
    this.#log = log;
  }
}

/** What of a file's text must not be printed. */
type SecretsIn = (text: string) => readonly string[];

/** Certificates stand in files too, and are none. */
function secretsUnder(fileKey: string): SecretsIn {
  return SECRET_KEYS.has(fileKey.slice(0, -'File'.length)) ? (text) => [text] : () => [];
}

interface Told {
  changed(): void;
  unreadable(problem: string): void;
}

class WatchedFile implements SecretFile {
  readonly #look: () => FileValue;
  readonly #told: Told;
  /** The newest last. */
  #values: readonly string[];
  /** What has been told of it. */
  #problem: string | null = null;
  #wasAccepted = false;
  #refusedSinceMs: number | null = null;

  constructor(value: string, look: () => FileValue, told: Told) {
    this.#values = [value];
    this.#look = look;
    this.#told = told;
  }

  get remembered(): readonly string[] {
    return this.#values;
  }

  read(): string {
    const last = this.#values.at(-1)!;
    const file = this.#look();
    if (!file.ok) {
      if (file.problem !== this.#problem) this.#told.unreadable(file.problem);
      this.#problem = file.problem;
      return last;
    }
    this.#problem = null;
    if (file.value === last) return last;
    this.#values = [...this.#values.filter((value) => value !== file.value), file.value].slice(-REMEMBERED);
    this.#told.changed();
    return file.value;
  }

  accepted(): void {
    this.#wasAccepted = true;
    this.#refusedSinceMs = null;
  }

  refused(): boolean {
    if (!this.#wasAccepted) return false;
    this.#refusedSinceMs ??= performance.now();
    return performance.now() - this.#refusedSinceMs < ROTATION_MS;
  }
}
