import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** A call that logs: `log.warn('tail-lost', { code })`. */
export interface LogCall {
  /** A pattern where a part of the name is only known when the program runs. */
  readonly event: RegExp;
  readonly levels: readonly string[];
  /** Those that are written out. */
  readonly fields: readonly string[];
  /** `relay/reader.ts:92`. */
  readonly where: string;
}

const LEVELS = ['debug', 'info', 'warn', 'error'];
const SOURCES = new URL('../../../src', import.meta.url).pathname;

/** Every call of the sources that logs an event by its name. Those that pass on what they are given have no name. */
export function logCalls(): LogCall[] {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .flatMap((name) => callsIn(name, readFileSync(join(SOURCES, name), 'utf8')));
}

function callsIn(name: string, text: string): LogCall[] {
  if (!/log\b/i.test(text)) return [];
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const found: LogCall[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const levels = levelsOf(node.expression);
      const where = `${name}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
      const fields = fieldsOf(node.arguments.at(1));
      if (levels !== null)
        found.push(...namesIn(node.arguments.at(0)).map((event) => ({ event, levels, fields, where })));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** `log.warn`, `this.#deps.log.warn`, `log[isFirst ? 'warn' : 'debug']`; a method `#log` says it at level info. */
function levelsOf(callee: ts.Expression): readonly string[] | null {
  if (ts.isElementAccessExpression(callee) && isLog(callee.expression)) return literalsIn(callee.argumentExpression);
  if (!ts.isPropertyAccessExpression(callee)) return null;
  if (LEVELS.includes(callee.name.text) && isLog(callee.expression)) return [callee.name.text];
  return callee.name.text === '#log' ? ['info'] : null;
}

function isLog(expression: ts.Expression): boolean {
  return /(?:^|[.#])log$/i.test(expression.getText());
}

function literalsIn(node: ts.Node | undefined): string[] {
  if (node === undefined) return [];
  if (ts.isStringLiteral(node)) return [node.text];
  return ts.isConditionalExpression(node) ? [...literalsIn(node.whenTrue), ...literalsIn(node.whenFalse)] : [];
}

function namesIn(node: ts.Expression | undefined): RegExp[] {
  if (node !== undefined && ts.isTemplateExpression(node)) {
    const parts = [node.head.text, ...node.templateSpans.map((span) => span.literal.text)];
    return [new RegExp(`^${parts.join('.+')}$`)];
  }
  return literalsIn(node).map((text) => new RegExp(`^${text}$`));
}

function fieldsOf(node: ts.Expression | undefined): string[] {
  if (node === undefined || !ts.isObjectLiteralExpression(node)) return [];
  return node.properties.flatMap(({ name }) => (name === undefined ? [] : [name.getText()]));
}
