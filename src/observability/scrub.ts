import { RelayError } from '../model/fault.ts';
import type { LogFields } from '../model/log.ts';
import { terminalText } from '../model/terminal-text.ts';
import type { KnownSecrets } from '../model/secret.ts';

const REDACTED = '[redacted]';

/** Shorter secrets are not looked for inside other text: `root` would blank half of every message. */
const SHORTEST_MASKED = 6;
const DEEPEST = 5;

/** Fields that hold a secret by their name; `tokenEndpoint` and the like do not. */
const SECRET_NAME = /(password|passphrase|secret|credentials?|token|authorization|privatekey)$/i;

/**
 * Makes what is logged safe: fields with a secret's name are blanked, known secrets are blanked wherever a library
 * has pasted them into a message (as they are and URL-encoded), errors become plain objects without the properties
 * that drivers attach (statements, values).
 */
export function scrubber(secrets: KnownSecrets): (fields: LogFields) => Record<string, unknown> {
  let needles = needlesOf(secrets);
  let { revision } = secrets;

  const mask = (text: string): string => {
    if (secrets.revision !== revision) {
      needles = needlesOf(secrets);
      ({ revision } = secrets);
    }
    for (const needle of needles) if (text.includes(needle)) text = text.replaceAll(needle, REDACTED);
    return terminalText(text);
  };

  const scrub = (value: unknown, depth: number, withStack = true): unknown => {
    if (typeof value === 'string') return mask(value);
    if (typeof value === 'bigint') return value.toString();
    if (value === null || typeof value !== 'object') return value;
    if (depth > DEEPEST) return '[...]';
    if (value instanceof Error) return scrubError(value, depth, withStack);
    if (Buffer.isBuffer(value)) return `[${value.length} bytes]`;
    if (Array.isArray(value)) return value.map((item) => scrub(item, depth + 1));
    return scrubObject(value as Readonly<Record<string, unknown>>, depth);
  };

  const scrubObject = (fields: LogFields, depth: number): Record<string, unknown> => {
    const out: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(fields)) {
      out[name] = SECRET_NAME.test(name) && value !== null && value !== undefined ? REDACTED : scrub(value, depth + 1);
    }
    return out;
  };

  // A stack helps where nobody classified the error; a fault's code and detail say it better than its cause's stack.
  const scrubError = (error: Error, depth: number, withStack: boolean): Record<string, unknown> => {
    const expected = error instanceof RelayError && error.fault.code !== 'INTERNAL';
    const cause = error.cause === undefined ? {} : { cause: scrub(error.cause, depth + 1, withStack && !expected) };
    if (error instanceof RelayError) {
      const { code, disposition, detail } = error.fault;
      return { code, disposition, detail: mask(detail), ...cause };
    }
    const code: unknown = 'code' in error ? error.code : undefined;
    return {
      type: error.name,
      ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
      message: mask(error.message),
      ...(withStack ? { stack: mask(error.stack ?? '') } : {}),
      ...cause,
    };
  };

  return (fields) => scrubObject(fields, 0);
}

/** The longest first. */
function needlesOf(secrets: KnownSecrets): string[] {
  return [...new Set(secrets.values().flatMap(formsOf))]
    .filter((needle) => needle.length >= SHORTEST_MASKED)
    .sort((a, b) => b.length - a.length);
}

/** What libraries make of a secret. PEM text has many lines, and each may be quoted alone. */
function formsOf(secret: string): string[] {
  const lines = secret.includes('\n') ? secret.split(/\r?\n/).filter((line) => !line.startsWith('-----')) : [];
  return [secret, ...lines].flatMap((text) => {
    const bytes = Buffer.from(text);
    // Without padding: what follows may have been encoded with it.
    const base64 = bytes.toString('base64').replace(/=+$/, '');
    return [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1), base64, bytes.toString('base64url')];
  });
}
