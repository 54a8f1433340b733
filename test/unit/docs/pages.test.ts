import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import type { RelayCommand } from '../../../src/commands/command.ts';
import { KEYS } from '../../../src/config/keys.ts';
import { ConfigDir } from '../config/config-dir.ts';
import { Looked } from '../observability/sources.ts';
import { anchors, type CodeBlock, codeBlocks, inlineCode, type Page, readPages, ROOT } from './pages.ts';

/*
 * What the guide says is there is there: configurations load, links lead somewhere, commands and their options, metrics,
 * tables, keys, events and codes exist.
 */

const PAGES = readPages();
const BLOCKS = PAGES.flatMap(codeBlocks);
const sources = globSync('{src/**/*.ts,migrations/**/*.sql}', { cwd: ROOT })
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

/** Each page with those of its words that are wrong: an empty list is expected. */
function wrong(of: (page: Page) => Iterable<string>): string[] {
  return PAGES.flatMap((page) => [...new Set(of(page))].map((word) => `${page.path}: ${word}`));
}

/** Other programs' YAML, known by a key that it begins with. */
const FOREIGN = ['apiVersion', 'groups', 'scrape_configs', 'services', 'rule_files'];
const CONFIGURATIONS = BLOCKS.filter(({ language, text }) => {
  return language === 'yaml' && !FOREIGN.some((key) => text.includes(`${key}:`));
});

test('there are configurations', () => {
  expect(CONFIGURATIONS.length).toBeGreaterThan(10);
});

test.each(CONFIGURATIONS)('the configuration at $page:$line loads', (block) => {
  using dir = new ConfigDir();
  const loaded = dir.load(stringify(completed(block, dir)));
  expect(loaded.ok ? '' : loaded.report).toBe('');
});

const COMPLETE: Readonly<Record<string, object>> = {
  mysql: { host: 'db1', user: 'relay', password: '', database: 'app' },
  kafka: { brokers: ['broker1:9092'] },
};

/** What a part of a configuration leaves out is added; files that it names are there. */
function completed(block: CodeBlock, dir: ConfigDir): object {
  const part = parse(block.text) as Record<string, Record<string, unknown> | undefined>;
  const whole: Record<string, unknown> = { name: 'orders', outboxes: [{ table: 'app.outbox' }], ...COMPLETE, ...part };
  for (const [section, keys] of Object.entries(COMPLETE)) {
    const { password, ...rest } = keys as Record<string, unknown>;
    const hasPassword = part[section]?.['passwordFile'] !== undefined || password === undefined;
    whole[section] = { ...rest, ...(hasPassword ? {} : { password }), ...part[section] };
  }
  return filesThere(whole, dir) as object;
}

const CONTENTS: Readonly<Record<string, string>> = {
  urlFile: 'mysql://relay@db1/app',
  caFile: '-----BEGIN CERTIFICATE-----\n',
  certFile: '-----BEGIN CERTIFICATE-----\n',
  keyFile: '-----BEGIN PRIVATE KEY-----\n',
};

function filesThere(value: unknown, dir: ConfigDir): unknown {
  if (Array.isArray(value)) return value.map((item) => filesThere(item, dir));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, below]) => {
    if (!/\wFile$/.test(key)) return [key, filesThere(below, dir)];
    return [key, dir.write(key, CONTENTS[key] ?? 'what-the-file-holds')];
  });
  return Object.fromEntries(entries) as object;
}

test('links lead somewhere', () => {
  const texts = new Map(PAGES.map(({ path, text }) => [path, text]));
  const broken = wrong(function* ({ path, text }) {
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file, anchor = ''] = target.split('#');
      const to = file === '' ? path : normalize(join(dirname(path), file));
      if (!existsSync(join(ROOT, to))) yield target;
      else if (anchor !== '' && !anchors(texts.get(to) ?? '').has(anchor)) yield target;
    }
  });
  expect(broken).toEqual([]);
});

test('every page of the guide is in its table of contents', () => {
  const contents = PAGES.find(({ path }) => path === 'docs/README.md')!.text;
  const pages = PAGES.map(({ path }) => path).filter((path) => /^docs\/(?!README)/.test(path));
  expect(pages.filter((path) => !contents.includes(`](${path.slice('docs/'.length)})`))).toEqual([]);
});

/** The commands as the program has them: it is loaded, and what it would run is taken away from it. */
async function commands(): Promise<ReadonlyMap<string, string>> {
  let found: readonly RelayCommand[] = [];
  vi.doMock('../../../src/commands/command.ts', () => ({
    runCommandLine: (_version: string, all: readonly RelayCommand[]) => Promise.resolve(((found = all), 0)),
  }));
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as typeof process.exit);
  await import('../../../src/cli.ts');
  await vi.waitFor(() => expect(exit).toHaveBeenCalled(), { timeout: 20_000 });
  exit.mockRestore();
  const flags = ({ options = [] }: RelayCommand): string => options.map(([option]) => option).join(' ');
  return new Map(found.map((command) => [command.name, flags(command)]));
}

test('every command and option is one that there is', async () => {
  const known = await commands();
  const globals = readFileSync(join(ROOT, 'src/commands/command.ts'), 'utf8');
  const unknown = wrong(function* (page) {
    const lines = codeBlocks(page).flatMap(({ text }) => text.split('\n'));
    for (const line of [...lines, ...inlineCode(page)]) {
      for (const [text, name, rest] of line.matchAll(/\bcdc-relay ([a-z]+(?: [a-z]+)?)((?: [^|#;&]*)?)/g)) {
        const options = known.get(name) ?? known.get(name.split(' ')[0]);
        if (options === undefined) yield text;
        for (const [flag] of ` ${rest}`.matchAll(/(?<= )--?[a-z][a-z-]*/g)) {
          const has = (flags: string): boolean => new RegExp(`(?<![\\w-])${flag}(?![\\w-])`).test(flags);
          if (!has(options ?? '') && !has(globals) && flag !== '--help') yield `${text}: ${flag}`;
        }
      }
    }
  });
  expect(known.size).toBeGreaterThan(15);
  expect(unknown).toEqual([]);
});

test('every metric and table is one that there is', async () => {
  const { metrics } = new Looked();
  const names = (await metrics.registry.getMetricsAsJSON()).map(({ name }) => name);
  const isMetric = (name: string): boolean => names.includes(name.replace(/_(bucket|sum|count)$/, ''));
  const isTable = (name: string): boolean => sources.includes(`{{schema}}.${name} `);
  const unknown = wrong(({ text }) => {
    const found = [...text.matchAll(/(?<!\w)cdc_relay_[a-z_]*[a-z](?![\w%])/g)].map(([name]) => name);
    return found.filter((name) => !isMetric(name) && !isTable(name));
  });
  expect(unknown).toEqual([]);
});

test('every key of the configuration is one that there is', () => {
  const patterns = new Set(KEYS.map(({ pattern }) => pattern.replaceAll('[]', '')));
  const variables = new Set(KEYS.map(({ variable }) => variable));
  const unknown = wrong(function* (page) {
    for (const code of inlineCode(page)) {
      const key = /^((?:mysql|kafka|relay|sweep|failures|http|log|outboxes\[\d?\])\.[\w.]+)(?:[:=]|$)/.exec(code)?.[1];
      if (key !== undefined && !patterns.has(key.replace(/\[\d?\]/, ''))) yield key;
    }
    for (const [name] of page.text.matchAll(/\bCDC_RELAY_(?!TEST|CONFIG\b)[A-Z_]*[A-Z]\b/g)) {
      if (!variables.has(name)) yield name;
    }
  });
  expect(unknown).toEqual([]);
});

const isSaid = (word: string): boolean => ["'", '`', '"'].some((mark) => sources.includes(`${mark}${word}${mark}`));

test('every event, check and code is one that there is', () => {
  const unknown = wrong((page) =>
    inlineCode(page).filter((code) => {
      const isEvent = /^(?!cdc-relay)[a-z]+(-[a-z]+)+$/.test(code);
      const isCode = /^(MYSQL|KAFKA|BINLOG|ROW|POSITION)_[A-Z_]+$/.test(code);
      // Checks are called like the settings that they are about; some events are a word and -failed; Kafka's own codes
      // have their prefix from here.
      const written = [code, code.replaceAll('-', '_'), code.replace(/-failed$/, ''), code.replace(/^KAFKA_/, '')];
      return (isEvent || isCode) && !written.some(isSaid);
    }),
  );
  expect(unknown).toEqual([]);
});

test('a page is a page: it begins with its name, and is not longer than one can read', () => {
  for (const { path, text } of PAGES) {
    expect(text, path).toMatch(/^# \S/);
    expect(statSync(join(ROOT, path)).size, path).toBeLessThan(40_000);
  }
});
