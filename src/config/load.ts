import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { LogSettings } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { checkRivals, crossCheck } from './cross-check.ts';
import { CONFIG_VARIABLE, type Environment, fromEnvironment } from './environment.ts';
import { type ConfigFault, faultsOf, report } from './faults.ts';
import { type ConfigFile, parseConfigText } from './file.ts';
import { fromFlags } from './flags.ts';
import type { Secret, SecretFile } from '../model/secret.ts';
import { merge, type Merged } from './layers.ts';
import { deleteAt, type Path, pathText, setAt, type Tree } from './paths.ts';
import { type Config, configSchema } from './schema.ts';
import { Secrets } from './secret-files.ts';
import { readValueFiles, redact, secretsIn, type ValueFiles } from './secrets.ts';
import { complete, settingsOf } from './settings.ts';
import { loginPart, partOf, type UrlFile, urlProblem } from './url-file.ts';
import { lookFor } from './value-file.ts';

/** Read where neither flag nor variable names a file, when it is there. */
export const DEFAULT_FILE = 'cdc-relay.yaml';

/** Whoever has forgotten to name the file would else be told that everything is missing. */
const NO_FILE = `without a file: there is no ${DEFAULT_FILE} here, and neither --config nor ${CONFIG_VARIABLE} names one`;

export interface ConfigSources {
  /** `--config`; null when not given. */
  readonly file: string | null;
  readonly environment: Environment;
  /** `--set key=value`, in order. */
  readonly sets: readonly string[];
}

export type LoadedConfig =
  | {
      readonly ok: true;
      readonly settings: Settings;
      readonly log: LogSettings;
      /** Values that must never be printed. */
      readonly secrets: Secrets;
      /** Everything that holds, defaults included, secrets blanked. */
      readonly redacted: Tree;
      /** Null when there was none. */
      readonly file: string | null;
    }
  | { readonly ok: false; readonly faults: readonly ConfigFault[]; readonly report: string };

/** Flags before environment before file. Never throws for what people wrote: every fault is found, and told at once. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const name = fileName(sources);
  const file = name === null ? noFile() : readFile(name);
  const where = name === null ? NO_FILE : `in ${name}`;
  const directory = name === null ? process.cwd() : dirname(resolve(name));

  // Of a file that cannot be read, every key would be missing.
  if (file.faults.length > 0) return { ok: false, faults: file.faults, report: report(file.faults, where) };

  const environment = fromEnvironment(sources.environment);
  const flags = fromFlags(sources.sets);
  const merged = merge(file.tree, directory, [environment.assignments, flags.assignments]);
  const originOf = (path: Path): string | undefined => nearest(path, merged.origins);

  const faults: ConfigFault[] = [...environment.faults, ...flags.faults, ...merged.faults];
  const add = (path: Path, message: string): void => {
    if (!faults.some((fault) => explains(fault, path))) faults.push({ path, message });
  };
  checkRivals(merged.tree, add);
  const files = readValueFiles(merged.tree, (path) => (originOf(path) === undefined ? directory : process.cwd()));
  faults.push(...files.faults);

  const asWritten = (path: Path): Path =>
    files.read.has(pathText(path)) ? [...path.slice(0, -1), `${String(path.at(-1))}File`] : path;
  const checked = check(merged.tree);
  for (const fault of checked.faults) faults.push({ ...fault, path: asWritten(fault.path) });
  if (checked.config !== null) crossCheck(checked.config, (path, message) => add(asWritten(path), message));

  if (faults.length > 0 || checked.config === null) {
    const located = inOrder(faults.map((fault) => locate(fault, file, originOf)));
    return { ok: false, faults: located, report: report(located, where) };
  }
  const config = complete(checked.config);
  const secrets = new Secrets(secretsIn(config));
  const again = readAgain(secrets, merged, files.read);
  return {
    ok: true,
    settings: settingsOf(config, (path, value) => again.get(path) ?? value),
    log: config.log,
    secrets,
    redacted: redact(config, files.read),
    file: name,
  };
}

/** What stands in files, by its path, to be read whenever it is used. A value that the start would refuse is not taken. */
function readAgain(secrets: Secrets, { tree, urlFiles }: Merged, files: ValueFiles['read']): Map<string, Secret> {
  const again = new Map<string, Secret>();
  const urls = new Map<UrlFile, SecretFile>();
  for (const [part, url] of urlFiles) {
    const look = lookFor(url, (now) => urlProblem(url.value, now));
    const file = urls.get(url) ?? secrets.file(url.key, url.value, look, (text) => [partOf(text, 'password')]);
    urls.set(url, file);
    again.set(`mysql.${part}`, loginPart(file, part));
  }
  for (const [path, file] of files) {
    const look = lookFor(file, (now) => {
      const changed = structuredClone(tree);
      setAt(changed, file.path, now);
      return check(changed).faults[0]?.message ?? null;
    });
    again.set(path, secrets.file(file.key, file.value, look));
  }
  return again;
}

const noFile = (...faults: ConfigFault[]): ConfigFile => ({ tree: {}, lineOf: () => undefined, faults });

function fileName({ file, environment }: ConfigSources): string | null {
  const named = file ?? environment[CONFIG_VARIABLE] ?? '';
  if (named !== '') return named;
  return existsSync(DEFAULT_FILE) ? DEFAULT_FILE : null;
}

function readFile(name: string): ConfigFile {
  let text: string;
  try {
    text = readFileSync(name, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
    return noFile({ path: [], message: `the file cannot be read: ${code}` });
  }
  return parseConfigText(text);
}

/**
 * Checks each key. What is faulty is taken out and the rest checked again, so that the cross-field checks have a whole
 * configuration to look at: it is never used for anything else.
 */
function check(tree: Tree): { faults: readonly ConfigFault[]; config: Config | null } {
  const first = configSchema.safeParse(tree);
  if (first.success) return { faults: [], config: first.data };
  const faults = faultsOf(first.error.issues, tree);
  const rest = structuredClone(tree);
  for (const { path } of faults) takeOut(rest, path);
  const second = configSchema.safeParse(rest);
  return { faults, config: second.success ? second.data : null };
}

/** An element of a list leaves a hole that the schema would refuse: a faulty table becomes an empty one. */
function takeOut(tree: Tree, path: Path): void {
  const index = path.findIndex((part) => typeof part === 'number');
  if (index < 0 || index < path.length - 1) deleteAt(tree, path);
  else if (path[0] === 'outboxes') setAt(tree, path, {});
  else deleteAt(tree, path.slice(0, index));
}

/** Whether a fault that is known already says why something is wrong at `path` too. */
function explains(fault: ConfigFault, path: Path): boolean {
  const [known, here] = [pathText(fault.path), pathText(path)];
  if (known === '') return false;
  if (known === `${here}File` || fault.meant === here) return true;
  if (/^mysql\.url(File)?$/.test(known)) return /^mysql\.(host|user|password|database)$/.test(here);
  return fault.path.slice(0, path.length).every((part, index) => part === path[index]);
}

function nearest(path: Path, origins: ReadonlyMap<string, string>): string | undefined {
  for (let length = path.length; length > 0; length--) {
    const origin = origins.get(pathText(path.slice(0, length)));
    if (origin !== undefined) return origin;
  }
  return undefined;
}

/** Says where a fault was written: the variable or flag, else the line of the file. */
function locate(fault: ConfigFault, file: ConfigFile, originOf: (path: Path) => string | undefined): ConfigFault {
  if (fault.where !== undefined || fault.path.length === 0) return fault;
  const line = file.lineOf(fault.path);
  const where = originOf(fault.path) ?? (line === undefined ? undefined : `line ${line}`);
  return where === undefined ? fault : { ...fault, where };
}

/** The file's faults from top to bottom, then those of variables and flags. */
function inOrder(faults: readonly ConfigFault[]): ConfigFault[] {
  const line = ({ where }: ConfigFault): number => Number(/^line (\d+)$/.exec(where ?? '')?.[1] ?? Infinity);
  return faults.toSorted((a, b) => (line(a) === line(b) ? 0 : line(a) - line(b)));
}
