import { format, resolveConfig } from 'prettier';
import type { z } from 'zod';
import { type Key, KEYS } from '../../../src/config/keys.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { pathText } from '../../../src/config/paths.ts';
import { configSchema, SECRET_KEYS } from '../../../src/config/schema.ts';
import { exampleComments } from './example-comments.ts';

const HEAD = `# Configuration

One YAML file, \`cdc-relay.yaml\` unless \`--config\` or \`CDC_RELAY_CONFIG\` names another; every key can also come from the
environment, and all but secrets from a flag. Flags go before variables, variables before the file. This page is made
from the schema and from [config/cdc-relay.example.yaml](../config/cdc-relay.example.yaml), which has every key with its
default: \`npm run test:unit -- configure-page -u\` writes it, and the same test keeps it true.

\`\`\`
cdc-relay config --check                    # every fault at once, with its line, and what was expected
cdc-relay config                            # what holds, defaults and all, without the secrets
cdc-relay config --set mysql.host=db1       # as a flag; also outboxes[0].retire=keep
\`\`\`

The least that is needed:

\`\`\`yaml
name: orders
mysql:
  host: 127.0.0.1
  user: cdc_relay
  passwordFile: mysql-password
  database: app
kafka:
  brokers: ['127.0.0.1:9092']
outboxes:
  - table: app.outbox
\`\`\`

- **Variables** are named in the tables. Lists are divided by commas; maps, and \`CDC_RELAY_OUTBOXES\`, are YAML or JSON.
  An empty variable is not set; one whose name is a slip away from a real one is a fault.
- **Secrets** (marked so) stand in quotes, or in a file of their own: the same key with \`File\` at its end. Relative paths
  begin at the configuration's directory; in a variable or a flag, at the working directory. The end of the line at the
  end of such a file does not count.
- **Units are in the names**: Ms, Bytes. Numbers are whole.
`;

const INTRODUCTIONS: Readonly<Record<string, string>> = {
  '': '## The relay itself',
  mysql: '## mysql: the primary',
  kafka: '## kafka: the cluster',
  outboxes: '## outboxes: the tables',
  relay: '## relay: memory and pace',
  sweep: '## sweep: what waits in the tables',
  failures: '## failures: what Kafka refuses',
  http: '## http: health, status, metrics',
  log: '## log',
};

/** All but maps whose keys say everything, and the keys of `start`, which stand in its own line. */
export function documentedKeys(): readonly Key[] {
  const self = new Set([...Object.keys(INTRODUCTIONS), 'outboxes[].topic']);
  return KEYS.filter(({ pattern }) => !self.has(pattern) && !pattern.startsWith('start.'));
}

/** What a key means, in the example's words; of a key that is not here it says nothing. */
export function meanings(): ReadonlyMap<string, string> {
  const said = exampleComments();
  const ofValue = (pattern: string): string | undefined => said.get(pattern) ?? said.get(`${pattern}File`);
  const meant = new Map<string, string>();
  for (const { pattern } of KEYS) {
    const value = pattern.replace(/File$/, '');
    // The example says so: as under mysql.
    const text = ofValue(value) ?? ofValue(value.replace(/^kafka\.tls\./, 'mysql.tls.'));
    if (text !== undefined) meant.set(pattern, value === pattern ? linked(text) : `A file that holds \`${value}\`.`);
  }
  return meant;
}

const linked = (text: string): string => text.replaceAll(/docs\/(\w+\.md)/g, '[$1]($1)');

/** `docs/configure.md`, as prettier has it. */
export async function configurePage(): Promise<string> {
  const meant = meanings();
  const required = requiredKeys();
  const sections = Object.entries(INTRODUCTIONS).map(([section, title]) => {
    const keys = documentedKeys().filter((key) => sectionOf(key) === section);
    const lines = keys.map((key) => {
      const cells = [`\`${key.pattern}\``, kind(key, required), key.variable === null ? '' : `\`${key.variable}\``];
      return `| ${[...cells, meant.get(key.pattern) ?? ''].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
    });
    return `${title}\n\n| Key | Value | Variable | Meaning |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`;
  });
  const options = await resolveConfig(import.meta.filename);
  return format(`${HEAD}\n${sections.join('\n')}`, { ...options, parser: 'markdown' });
}

const sectionOf = ({ pattern }: Key): string => {
  const first = /^\w+/.exec(pattern)![0];
  return first in INTRODUCTIONS ? first : '';
};

/** What is accepted, in the words of the fault that one gets for anything else; then the default. */
function kind(key: Key, required: ReadonlySet<string>): string {
  const { schema, byDefault } = schemaAt(key);
  const expected = expectedBy(schema).replace(/,?(?: a whole number)? from (?=\d)/, ', ');
  const parts = [expected];
  if (SECRET_KEYS.has(key.pattern)) parts.push('**secret**');
  if (required.has(key.pattern)) parts.push('**needed**');
  else if (byDefault !== undefined) parts.push(`default \`${shown(byDefault)}\``);
  return parts.join('; ');
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : String(value);
}

/** The schema of a key without what stands around it, and its default. */
function schemaAt({ pattern }: Key): { schema: z.core.$ZodType; byDefault: unknown } {
  let at: z.core.$ZodType = configSchema;
  let byDefault: unknown;
  for (const part of pattern.split('.')) {
    for (const name of part.endsWith('[]') ? [part.slice(0, -2), '[]'] : [part]) {
      at = name === '[]' ? (bare(at).schema as z.core.$ZodArray)._zod.def.element : shapeOf(bare(at).schema)[name];
      ({ byDefault } = bare(at));
    }
  }
  return { schema: bare(at).schema, byDefault };
}

function bare(schema: z.core.$ZodType, byDefault?: unknown): { schema: z.core.$ZodType; byDefault: unknown } {
  const def = schema._zod.def as z.core.$ZodTypeDef & { innerType?: z.core.$ZodType; defaultValue?: unknown };
  if (def.innerType === undefined) return { schema, byDefault };
  return bare(def.innerType, def.type === 'default' ? def.defaultValue : byDefault);
}

function shapeOf(schema: z.core.$ZodType): z.core.$ZodShape {
  if (schema._zod.def.type === 'object') return (schema as z.core.$ZodObject)._zod.def.shape;
  const found = (schema as z.core.$ZodUnion)._zod.def.options.map((one) => bare(one).schema);
  return shapeOf(found.find((one) => one._zod.def.type === 'object')!);
}

function expectedBy(schema: z.core.$ZodType): string {
  const parsed = (schema as z.ZodType).safeParse(Symbol('nothing that anybody writes'));
  if (parsed.success) throw new Error('a schema that takes anything');
  return parsed.error.issues[0].message;
}

/** Those that are missing in a configuration that has one outbox and nothing else. */
function requiredKeys(): ReadonlySet<string> {
  const loaded = loadConfig({ file: null, sets: [], environment: { CDC_RELAY_OUTBOXES: '[{}]' } });
  if (loaded.ok) throw new Error('a configuration without anything is good');
  const missing = loaded.faults.filter(({ message }) => message.startsWith('missing'));
  return new Set(missing.map(({ path }) => pathText(path).replaceAll(/\[\d+\]/g, '[]')));
}
