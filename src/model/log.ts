/** Values that one log line carries beside its event. Never a secret, never a payload. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The log as every layer sees it. `event` is a stable name in kebab-case (`lane-stalled`, `checkpoint-saved`): people
 * build alerts on it, so it changes like an API. What a reader needs beside it goes into the fields, with units in
 * their names; a caught error goes under `err`.
 */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** The same log with `fields` on each line. */
  child(fields: LogFields): Log;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** `auto` is `pretty` on a terminal, else one JSON object a line. */
export type LogFormat = 'auto' | 'json' | 'pretty';

export interface LogSettings {
  readonly level: LogLevel;
  readonly format: LogFormat;
}
