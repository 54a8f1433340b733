import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

export interface Page {
  /** From the root: `docs/mysql.md`. */
  readonly path: string;
  readonly text: string;
}

export interface CodeBlock {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  /** Without the indentation of a list around it. */
  readonly text: string;
}

/** What people read: the README, the changelog, the guide. */
export function readPages(): readonly Page[] {
  const paths = ['README.md', 'CHANGELOG.md', ...globSync('docs/*.md', { cwd: ROOT }).toSorted()];
  return paths.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

export function codeBlocks({ path, text }: Page): readonly CodeBlock[] {
  return [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm)].map((match) => ({
    page: path,
    line: text.slice(0, match.index).split('\n').length,
    language: match[2],
    text: match[3].replaceAll(new RegExp(`^${match[1]}`, 'gm'), ''),
  }));
}

/** `words` in backticks, outside of blocks. */
export function inlineCode({ text }: Page): readonly string[] {
  return [...withoutBlocks(text).matchAll(/(`+)([^`]+)\1/g)].map((match) => match[2].replaceAll(/\s+/g, ' '));
}

export function withoutBlocks(text: string): string {
  return text.replaceAll(/^( *)```\w*\n[\s\S]*?^ *```$/gm, '');
}

/** As GitHub makes them of headings. */
export function anchors(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const headings = withoutBlocks(text).matchAll(/^#{1,6} +(.+)$/gm);
  return new Set(
    [...headings].map(([, heading]) => {
      const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const slug = plain.replaceAll(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-');
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}
