/** A place in the configuration: keys and list indices from the top. */
export type Path = readonly (string | number)[];

/** `outboxes[0].topic.fixed`; a key that is not a plain word stands in quotes, shortened. */
export function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += `${text === '' ? '' : '.'}${/^[\w-]{1,64}$/.test(part) ? part : JSON.stringify(part.slice(0, 40))}`;
  }
  return text;
}

/** Reads `outboxes[0].topic.fixed`; null when it is no path. */
export function parsePath(text: string): Path | null {
  if (!/^\w+(\[\d{1,4}\])*(\.\w+(\[\d{1,4}\])*)*$/.test(text)) return null;
  return text.match(/\w+/g)!.map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

export type Tree = Record<string, unknown>;

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function valueAt(tree: unknown, path: Path): unknown {
  let at = tree;
  for (const part of path) {
    if (Array.isArray(at) && typeof part === 'number') at = at[part] as unknown;
    else if (isTree(at) && typeof part === 'string' && Object.hasOwn(at, part)) at = at[part];
    else return undefined;
  }
  return at;
}

/**
 * Sets a value, making maps and lists on the way. `tls: true` gives place to a map; anything else that stands in the
 * way stays, and is reported by whoever checks the tree.
 */
export function setAt(tree: Tree, path: Path, value: unknown): void {
  let at = tree as Tree & unknown[];
  for (const [index, part] of path.entries()) {
    if (index === path.length - 1) {
      at[part as number] = value;
      return;
    }
    const wantsList = typeof path[index + 1] === 'number';
    const below = at[part as number];
    if (below === undefined || typeof below === 'boolean') at[part as number] = wantsList ? [] : {};
    else if (wantsList ? !Array.isArray(below) : !isTree(below)) return;
    at = at[part as number] as Tree & unknown[];
  }
}

export function deleteAt(tree: unknown, path: Path): void {
  const parent = valueAt(tree, path.slice(0, -1));
  const last = path.at(-1);
  if (isTree(parent) && typeof last === 'string') Reflect.deleteProperty(parent, last);
}
