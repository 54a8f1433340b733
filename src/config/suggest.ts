import { closest, distance } from 'fastest-levenshtein';
import { keyAt, KEYS, keysUnder } from './keys.ts';
import { type Path, pathText } from './paths.ts';

/** A word out of a short, fixed list: even a distant one helps, a wholly different one does not. */
export function closestWord(word: string, options: readonly string[]): string | undefined {
  const best = closest(word.toLowerCase(), options);
  return distance(word.toLowerCase(), best) <= word.length * 0.67 ? best : undefined;
}

/** The key that was meant: a neighbour spelt alike, or a key of this name that has its place elsewhere. */
export function misplacedOrMisspelt(path: Path): string | undefined {
  const name = path.at(-1);
  const parent = path.slice(0, -1);
  if (typeof name !== 'string') return undefined;
  const neighbour = alike(name, keysUnder(parent));
  if (neighbour !== undefined) return pathText([...parent, neighbour]);
  return KEYS.find((key) => folded(key.path.at(-1)!) === folded(name) && key.variable !== null)?.pattern;
}

/** The configuration path that was meant by a flag's. */
export function alikePath(path: Path): string | undefined {
  let known = path.length;
  while (known > 0 && keyAt(path.slice(0, known)) === undefined) known--;
  return misplacedOrMisspelt(path.slice(0, known + 1));
}

/** The one of `names` that differs from `name` by a slip, by case or separators, or is its beginning. */
export function alike(name: string, names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const wanted = folded(name);
  const best = names.reduce((a, b) => (distance(wanted, folded(b)) < distance(wanted, folded(a)) ? b : a));
  const slips = Math.max(wanted.length < 4 ? 1 : 2, Math.floor(wanted.length / 4));
  if (distance(wanted, folded(best)) <= slips) return best;
  return (
    names.find((other) => other.length > 3 && (wanted.startsWith(folded(other)) || folded(other).startsWith(wanted))) ??
    names.find((other) => other.length > 3 && wanted.endsWith(folded(other)))
  );
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '');
}
