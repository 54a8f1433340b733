import type { z } from 'zod';
import type { Path } from './paths.ts';
import { configSchema } from './schema.ts';

/** How the text of a variable or flag becomes a value. */
export type Reading = 'text' | 'number' | 'yes-or-no' | 'list' | 'yaml';

export interface Key {
  /** List elements are written `[]`: `outboxes[].retire`. */
  readonly pattern: string;
  readonly path: readonly string[];
  /** Null where no single variable can say which list element is meant. */
  readonly variable: string | null;
  readonly reading: Reading;
  /** True for a map whose keys follow. */
  readonly isMap: boolean;
}

export const PREFIX = 'CDC_RELAY_';

/** Every key of the schema, a map before its own keys. */
export const KEYS: readonly Key[] = [...walk(configSchema, [])];
const BY_PATTERN = new Map(KEYS.map((key) => [key.pattern, key]));

export function keyAt(path: Path): Key | undefined {
  return BY_PATTERN.get(patternOf(path));
}

/** Names of the keys that a map at `path` may have. */
export function keysUnder(path: Path): string[] {
  const prefix = patternOf(path);
  return KEYS.filter((key) => key.pattern === joined(prefix, key.path.at(-1)!)).map((key) => key.path.at(-1)!);
}

export function patternOf(path: Path): string {
  return path.reduce<string>((text, part) => (typeof part === 'number' ? `${text}[]` : joined(text, part)), '');
}

function joined(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}.${name}`;
}

/** `mysql.passwordFile` is CDC_RELAY_MYSQL_PASSWORD_FILE; `relay.` is not said twice: CDC_RELAY_FLUSH_MS. */
function variableOf(path: readonly string[]): string {
  const parts = path[0] === 'relay' ? path.slice(1) : path;
  return PREFIX + parts.map((part) => part.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()).join('_');
}

function* walk(schema: z.core.$ZodType, path: readonly string[]): Generator<Key> {
  const inner = unwrapped(schema);
  const inList = path.includes('[]');
  if (path.length > 0 && path.at(-1) !== '[]') {
    const named = path.filter((part) => part !== '[]');
    const isSection = kindOf(inner) === 'object' && (path.length === 1 || inList);
    yield {
      pattern: path.reduce((text, part) => (part === '[]' ? `${text}[]` : joined(text, part)), ''),
      path: named,
      variable: inList || isSection ? null : variableOf(named),
      reading: readingOf(inner),
      isMap: shapeOf(inner) !== null,
    };
  }
  const shape = shapeOf(inner);
  if (shape !== null) for (const [name, below] of Object.entries(shape)) yield* walk(below, [...path, name]);
  if (inner._zod.def.type === 'array') {
    yield* walk((inner as z.core.$ZodArray)._zod.def.element, [...path, '[]']);
  }
}

function kindOf(schema: z.core.$ZodType): string {
  return schema._zod.def.type;
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const def = schema._zod.def as z.core.$ZodTypeDef & { innerType?: z.core.$ZodType };
  return def.innerType === undefined ? schema : unwrapped(def.innerType);
}

/** The keys of a map, or of the map that a union such as `true | {…}` has. */
function shapeOf(schema: z.core.$ZodType): z.core.$ZodShape | null {
  if (kindOf(schema) === 'object') return (schema as z.core.$ZodObject)._zod.def.shape;
  if (kindOf(schema) !== 'union') return null;
  const options = (schema as z.core.$ZodUnion)._zod.def.options.map(unwrapped);
  const found = options.find((option) => kindOf(option) === 'object');
  return found === undefined ? null : (found as z.core.$ZodObject)._zod.def.shape;
}

function readingOf(schema: z.core.$ZodType): Reading {
  switch (kindOf(schema)) {
    case 'string':
    case 'enum':
      return 'text';
    case 'number':
      return 'number';
    case 'boolean':
      return 'yes-or-no';
    case 'array':
      return kindOf(unwrapped((schema as z.core.$ZodArray)._zod.def.element)) === 'string' ? 'list' : 'yaml';
    default:
      return 'yaml';
  }
}
