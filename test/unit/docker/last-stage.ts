import { text } from './given-config.ts';

/** The instructions of the Dockerfile, each on one line. */
export const instructions = text('Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '');
export const stages = instructions.join('\n').split(/^(?=FROM )/m);
/** The image itself. */
export const last = stages.at(-1)!.trim().split('\n');

/** Its instructions of one kind. */
export function of(word: string): string[] {
  return last.filter((line) => line.startsWith(`${word} `));
}
