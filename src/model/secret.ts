/** A value that must not be printed: as it is, or where to read it. */
export type Secret = string | SecretFile;

/** A value that stands in a file, and may be changed there while the relay runs: rotation, short-lived tokens. */
export interface SecretFile {
  /** What the file holds; where it cannot be read now, what it held last. */
  read(): string;
  /** A server has taken the value. */
  accepted(): void;
  /** A server has refused it. True: one was taken before, so it is probably just being changed: try again. */
  refused(): boolean;
}

/** For each connection anew. */
export function valueOf(secret: Secret): string {
  return typeof secret === 'string' ? secret : secret.read();
}

/** Every value that must not be printed, as far as it is known by now. */
export interface KnownSecrets {
  /** Goes up when there are others. */
  readonly revision: number;
  values(): readonly string[];
}
