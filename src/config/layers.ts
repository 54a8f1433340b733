import type { Assignment } from './assignment.ts';
import type { ConfigFault } from './faults.ts';
import { keyAt } from './keys.ts';
import { readMysqlUrl } from './mysql-url.ts';
import { deleteAt, isTree, type Path, pathText, setAt, type Tree, valueAt } from './paths.ts';
import type { LoginPart, UrlFile } from './url-file.ts';
import { type FileValue, readValueFile } from './value-file.ts';

/** The values of all sources in one tree: the file's, over them the environment's, over them the flags'. */
export interface Merged {
  readonly tree: Tree;
  /** Source of each value that is not the file's, by path. */
  readonly origins: ReadonlyMap<string, string>;
  /** Of the login, what is part of a URL in a file. */
  readonly urlFiles: ReadonlyMap<LoginPart, UrlFile>;
  readonly faults: readonly ConfigFault[];
}

/** `directory` is where relative paths of the file's own keys start. */
export function merge(fileTree: Tree, directory: string, layers: readonly (readonly Assignment[])[]): Merged {
  const origins = new Map<string, string>();
  const urlFiles = new Map<LoginPart, UrlFile>();
  const faults: ConfigFault[] = [];
  const tree = fileTree;
  let url = expandFileUrl(tree, directory, faults);
  noteUrlFiles(url ?? [], urlFiles);
  for (const layer of layers) {
    const assignments = expandUrls(layer, faults);
    if (layer.some(({ path }) => isUrl(path))) url = assignments;
    // Rivals first, all of them: two rivals in one layer must both survive, so that they are seen and reported.
    for (const { path } of assignments) for (const rival of rivalsOf(path)) deleteAt(tree, rival);
    noteUrlFiles(assignments, urlFiles);
    for (const { path, value, where } of assignments) {
      if (value === true && isTree(valueAt(tree, path))) continue;
      const gap = path.findIndex((part, at) => typeof part === 'number' && part > lengthAt(tree, path.slice(0, at)));
      if (gap >= 0) {
        faults.push({
          path,
          where,
          message: `${pathText(path.slice(0, gap))} has ${entries(lengthAt(tree, path.slice(0, gap)))}`,
        });
        continue;
      }
      setAt(tree, path, value);
      origins.set(pathText(path), where);
    }
  }
  // A URL says all there is to say about the login: none in it means that there is none.
  const login = valueAt(tree, ['mysql']);
  if (url !== null && isTree(login) && login['password'] === undefined && login['passwordFile'] === undefined) {
    login['password'] = '';
    const file = url.find(({ urlFile }) => urlFile !== undefined)?.urlFile;
    if (file !== undefined) urlFiles.set('password', file);
  }
  return { tree, origins, urlFiles, faults };
}

/** The last source that names a part is the one it comes from. */
function noteUrlFiles(assignments: readonly Assignment[], urlFiles: Map<LoginPart, UrlFile>): void {
  for (const { path, urlFile } of assignments) {
    const part = (['user', 'password'] as const).find((name) => pathText(path) === `mysql.${name}`);
    if (part === undefined) continue;
    if (urlFile === undefined) urlFiles.delete(part);
    else urlFiles.set(part, urlFile);
  }
}

const isUrl = (path: Path): boolean => /^mysql\.url(File)?$/.test(pathText(path));

function lengthAt(tree: Tree, path: Path): number {
  const list = valueAt(tree, path);
  return Array.isArray(list) ? list.length : 0;
}

/** Keys that say the same thing another way: a higher source's `password` replaces a lower one's `passwordFile`. */
export function rivalsOf(path: Path): Path[] {
  const parent = path.slice(0, -1);
  const name = path.at(-1);
  if (typeof name !== 'string') return [];
  const others = TOPIC_RULES.includes(name)
    ? TOPIC_RULES.filter((other) => other !== name)
    : [name.endsWith('File') ? name.slice(0, -'File'.length) : `${name}File`];
  return others.map((other) => [...parent, other]).filter((other) => keyAt(other) !== undefined);
}

const TOPIC_RULES = ['column', 'fixed', 'template'];

/** Turns `mysql.url` into the keys it stands for, so that each can be replaced by a higher source. Null: there is none. */
function expandFileUrl(tree: Tree, directory: string, faults: ConfigFault[]): readonly Assignment[] | null {
  const mysql = tree['mysql'];
  if (!isTree(mysql) || (mysql['url'] !== undefined && mysql['urlFile'] !== undefined)) return null;
  const key = typeof mysql['url'] === 'string' ? 'url' : 'urlFile';
  const text = mysql[key];
  if (typeof text !== 'string') return null;
  const parts = urlParts({ path: ['mysql', key], value: text, where: '' }, directory, faults);
  for (const part of parts) {
    if (valueAt(tree, part.path) === undefined) setAt(tree, part.path, part.value);
    else faults.push({ path: part.path, message: givenTwice(key) });
  }
  Reflect.deleteProperty(mysql, 'url');
  Reflect.deleteProperty(mysql, 'urlFile');
  return parts;
}

function expandUrls(layer: readonly Assignment[], faults: ConfigFault[]): Assignment[] {
  const urls = layer.filter(({ path }) => isUrl(path));
  if (urls.length !== 1) return [...layer];
  const others = layer.filter((assignment) => assignment !== urls[0]);
  const parts = urlParts(urls[0], process.cwd(), faults);
  for (const { path, where } of others) {
    if (!parts.some((part) => pathText(part.path) === pathText(path))) continue;
    faults.push({ path, where, message: givenTwice(urls[0].where) });
  }
  return [...parts, ...others];
}

const givenTwice = (url: string): string => `given twice: it is also part of ${url}`;

function urlParts(url: Assignment, directory: string, faults: ConfigFault[]): Assignment[] {
  const at = { path: url.path, ...(url.where === '' ? {} : { where: url.where }) };
  const look = lookAt(url, directory);
  const file = look();
  const parts = file.ok ? readMysqlUrl(file.value) : file.problem;
  if (typeof parts === 'string') {
    faults.push({ ...at, message: parts });
    return [];
  }
  const urlFile =
    file.ok && url.path.at(-1) === 'urlFile' ? { urlFile: { key: pathText(url.path), value: file.value, look } } : {};
  return Object.entries(parts).map(([name, value]) => ({ path: ['mysql', name], value, where: url.where, ...urlFile }));
}

function lookAt({ path, value }: Assignment, directory: string): () => FileValue {
  const text = value as string;
  return path.at(-1) === 'urlFile' ? () => readValueFile(text, directory) : () => ({ ok: true, value: text });
}

const entries = (count: number): string => `${count} ${count === 1 ? 'entry' : 'entries'}`;
