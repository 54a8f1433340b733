import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const EXAMPLE = join(import.meta.dirname, '../../../config/cdc-relay.example.yaml');

/**
 * What config/cdc-relay.example.yaml says above each key, or beside it, by the key's pattern. A comment belongs to the
 * one key that follows; of `x` and `xFile` either has it.
 */
export function exampleComments(): ReadonlyMap<string, string> {
  const said = new Map<string, string>();
  const path: string[] = [];
  let above: string[] = [];
  for (const line of readFileSync(EXAMPLE, 'utf8').split('\n').map(uncommented)) {
    const comment = /^\s*# ?(.*)$/.exec(line);
    const key = /^((?: {2})*)((?:- )?)(\w+):(?:.*? # )?(.*)$/.exec(line);
    if (comment !== null) above.push(comment[1]);
    else if (key !== null) {
      const [, indent, dash, name, rest] = key;
      const depth = indent.length / 2;
      // A list element's own keys stand two further in than its dash.
      if (dash === '') path.splice(depth, path.length, name);
      else path.splice(depth - 1, path.length, `${path[depth - 1].replace('[]', '')}[]`, '', name);
      const text = line.includes(' # ') ? rest : sentences(above);
      if (text !== '') said.set(path.filter((part) => part !== '').join('.'), text);
      above = [];
    } else above = [];
  }
  return said;
}

/** As the line is where it holds: `#key: value`, also one within another that is commented out. */
function uncommented(line: string): string {
  return line.replace(/^(\s*)#((?: {2})*)(?=\w+:( |$))/, '$1$2').replace(/^(\s*)#((?: {2})+)(?=# )/, '$1$2');
}

/** Lines as one text: what is listed, further in than the rest, is divided by semicolons. */
function sentences(lines: readonly string[]): string {
  const parts = lines.map((line) => {
    const item = /^ {2,}(\{.*?\}|\S+) {2,}(.*)$/.exec(line) ?? /^ {2,}(\{.*?\}) (.*)$/.exec(line);
    return item === null ? { text: line, isItem: false } : { text: `\`${item[1]}\`: ${item[2]}`, isItem: true };
  });
  return parts
    .map(({ text, isItem }, index) => (isItem && parts[index - 1]?.isItem ? `; ${text}` : ` ${text}`))
    .join('')
    .trim();
}
