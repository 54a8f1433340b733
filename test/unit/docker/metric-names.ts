import { Registry } from 'prom-client';
import { addProcessMetrics } from '../../../src/observability/metrics.ts';
import { Looked } from '../observability/sources.ts';

/** What Prometheus adds to each series that it scrapes. */
const SCRAPED = ['job', 'instance', 'namespace'];

/** Every series that a relay has, with its labels: of a histogram its three. */
export async function knownSeries(): Promise<ReadonlyMap<string, readonly string[]>> {
  const processRegistry = new Registry();
  addProcessMetrics(processRegistry);
  const series = new Map<string, readonly string[]>([['up', SCRAPED]]);
  for (const registry of [new Looked().metrics.registry, processRegistry]) {
    const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]));
    for (const metric of registry.getMetricsAsArray()) {
      // prom-client knows them, and does not tell.
      const { labelNames = [] } = metric as { labelNames?: readonly string[] };
      const labels = [...labelNames, ...SCRAPED];
      series.set(metric.name, labels);
      if (types.get(metric.name) !== 'histogram' && types.get(metric.name) !== 'summary') continue;
      series.set(`${metric.name}_bucket`, [...labels, 'le']);
      for (const part of ['_sum', '_count']) series.set(`${metric.name}${part}`, labels);
    }
  }
  return series;
}

export interface Named {
  readonly names: readonly string[];
  /** Of selectors, by metric; of groupings and matchings, all that an expression has, under ''. */
  readonly labels: readonly (readonly [metric: string, label: string])[];
}

/** What a PromQL expression names. */
export function namedIn(expression: string): Named {
  const text = expression.replaceAll(/"[^"]*"/g, '""').replaceAll(/\$__?\w+|\[[^\]]*\]/g, '');
  const names = [...text.matchAll(/\b(?:cdc_relay|process|nodejs)_\w+\b|\bup\b/g)].map(([name]) => name);
  const selected = [...text.matchAll(/\b(\w+)\{([^}]*)\}/g)].flatMap(([, metric, matchers]) =>
    [...matchers.matchAll(/(\w+)\s*[=!]/g)].map(([, label]) => [metric, label] as const),
  );
  const grouped = [...text.matchAll(/\b(?:by|on|without|group_left|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, labels]) =>
    labels
      .split(',')
      .map((label) => ['', label.trim()] as const)
      .filter(([, label]) => label !== ''),
  );
  return { names, labels: [...selected, ...grouped] };
}

/** What of an expression is not there. */
export function unknownIn(expression: string, series: ReadonlyMap<string, readonly string[]>): string[] {
  const { names, labels } = namedIn(expression);
  const all = new Set(names.flatMap((name) => series.get(name) ?? []));
  return [
    ...names.filter((name) => !series.has(name)),
    ...labels
      .filter(([metric, label]) => !(metric === '' ? all.has(label) : series.get(metric)?.includes(label)))
      .map(([metric, label]) => `${metric}{${label}}`),
  ];
}
