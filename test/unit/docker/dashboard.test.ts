import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { knownSeries, unknownIn } from './metric-names.ts';

const GRAFANA = join(import.meta.dirname, '../../../docker/grafana');
const box = z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() });
const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('${datasource}') });

const dashboard = z
  .object({
    uid: z.literal('cdc-relay'),
    title: z.string(),
    schemaVersion: z.int().min(41),
    templating: z.object({ list: z.array(z.object({ name: z.string(), definition: z.string().optional() })) }),
    annotations: z.object({ list: z.array(z.object({ expr: z.string() })) }),
    panels: z.array(
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('row'), id: z.int(), title: z.string(), gridPos: box }),
        z.object({
          type: z.enum(['timeseries', 'stat', 'state-timeline', 'heatmap']),
          id: z.int(),
          title: z.string(),
          gridPos: box,
          datasource,
          targets: z
            .array(z.object({ refId: z.string(), datasource, expr: z.string(), legendFormat: z.string() }))
            .min(1),
        }),
      ]),
    ),
  })
  .parse(JSON.parse(readFileSync(join(GRAFANA, 'cdc-relay.json'), 'utf8')));
const panels = dashboard.panels.flatMap((panel) => (panel.type === 'row' ? [] : [panel]));
const queries = panels.flatMap(({ title, targets }) => targets.map((target) => ({ title, ...target })));

test('it has a row for each question', () => {
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
  expect(rows).toEqual([
    'Verdict',
    'Lag and rate',
    'Latency: commit to acknowledgement',
    'What waits',
    'Parked and failed',
    'Kafka',
    'MySQL and purge headroom',
    'Jobs',
    'Process',
  ]);
});

test('panels have ids of their own, and places of their own', () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
});

test.each(queries)('$title: $expr asks for series and labels that there are', async ({ expr, legendFormat }) => {
  const series = await knownSeries();
  expect(unknownIn(expr, series)).toEqual([]);
  expect(expr).toContain('instance=~"$instance"');
  // The legend can only name what the query keeps.
  for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
    const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1].split(', ') ?? ['instance', 'state'];
    expect(kept, legendFormat).toContain(label);
  }
});

test('its variables are those that the queries use, and ask for what there is', async () => {
  const series = await knownSeries();
  const { list } = dashboard.templating;
  expect(list.map(({ name }) => name)).toEqual(['datasource', 'relay', 'instance']);
  for (const { definition = '' } of list) {
    expect(unknownIn(definition, series)).toEqual([]);
    const label = /, (\w+)\)$/.exec(definition)?.[1];
    if (label !== undefined) expect(series.get('cdc_relay_info')).toContain(label);
  }
  for (const { expr } of dashboard.annotations.list) expect(unknownIn(expr, series)).toEqual([]);
});

test('what is provisioned with it is where it says', () => {
  const parsed = (file: string): unknown => parse(readFileSync(join(GRAFANA, file), 'utf8'));
  const compose = parsed('../compose.yaml') as { services: { grafana: { volumes: string[] } } };
  const { providers } = parsed('dashboards.yaml') as { providers: [{ options: { path: string } }] };
  const mounts = compose.services.grafana.volumes.map((volume) => volume.split(':').slice(0, 2));
  expect(mounts).toContainEqual(['./grafana/cdc-relay.json', `${providers[0].options.path}/cdc-relay.json`]);
  expect(mounts).toContainEqual(['./grafana/datasource.yaml', '/etc/grafana/provisioning/datasources/prometheus.yaml']);
  expect(parsed('datasource.yaml')).toMatchObject({ datasources: [{ type: 'prometheus', isDefault: true }] });
});
