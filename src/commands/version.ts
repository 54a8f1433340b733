import { readFileSync } from 'node:fs';
import { z } from 'zod';

const packageJson = z
  .object({ version: z.string(), engines: z.object({ node: z.string().regex(/^>=\d+\.\d+$/) }) })
  .parse(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));

/** Of the package. */
export const { version } = packageJson;

/** Null: this Node.js will do. npm only warns of one that will not, and what it lacks shows as a broken import. */
export function nodeTooOld(node: string): string | null {
  const wanted = packageJson.engines.node.slice('>='.length);
  const [[major, minor], [leastMajor, leastMinor]] = [node, wanted].map((text) => text.split('.').map(Number));
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return null;
  return `cdc-relay needs Node.js ${wanted} or later, and this is ${node}`;
}
