import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { knownSeries, unknownIn } from './metric-names.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const { groups } = z
  .object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.object({
            alert: z.string(),
            expr: z.string(),
            for: z.string(),
            labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
            annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook: z.string() }),
          }),
        ),
      }),
    ),
  })
  .parse(parse(read('docker/prometheus/alerts.yaml')));
const rules = groups.flatMap((group) => group.rules);
const tried = read('docker/prometheus/alerts.test.yaml');
const page = read('docs/alerts.md');

/** The text of the page under the heading of an alert. */
function section(alert: string): string {
  return page.split(/^## /m).find((part) => part.startsWith(`${alert}\n`)) ?? '';
}

test('there is an alert for each thing that wakes somebody up', () => {
  expect(rules.map(({ alert }) => alert).toSorted()).toEqual([
    'CdcRelayDown',
    'CdcRelayFailedRows',
    'CdcRelayLag',
    'CdcRelayNoLeader',
    'CdcRelayNotReady',
    'CdcRelayParked',
    'CdcRelayPaused',
    'CdcRelayPendingGrowing',
    'CdcRelayPurgeHeadroom',
    'CdcRelayStuck',
    'CdcRelayTwoLeaders',
  ]);
});

test.each(rules)('$alert asks for series and labels that there are', async ({ expr }) => {
  expect(unknownIn(expr, await knownSeries())).toEqual([]);
});

test.each(rules)('$alert fires in a test of its own', ({ alert }) => {
  const fires = new RegExp(`alertname="${alert}", alertstate="firing"|alertname: ${alert}\\n +exp_alerts:\\n`);
  expect(tried).toMatch(fires);
});

test.each(rules)('docs/alerts.md says what $alert means and what to do', ({ alert, annotations, ...rule }) => {
  expect(annotations.runbook).toBe(`docs/alerts.md#${alert.toLowerCase()}`);
  const text = section(alert);
  for (const part of ['**Means.**', '**Look first.**', '**Do.**']) expect(text).toContain(part);
  expect(text).toContain(`${rule.labels.severity}, after ${rule.for}`);
});

test('docs/alerts.md has no alert that there is not', () => {
  const headings = [...page.matchAll(/^## (CdcRelay\w+)$/gm)].map(([, alert]) => alert);
  expect(headings).toEqual(rules.map(({ alert }) => alert));
});

test('what an expression names is found, and missed where it is not', async () => {
  const series = await knownSeries();
  expect(unknownIn('sum by (le) (rate(cdc_relay_mysql_seconds_bucket{operation="flush"}[5m]))', series)).toEqual([]);
  expect(unknownIn('sum by (topic) (cdc_relay_lag_second{job=~"x"}) + cdc_relay_lanes{at="head"}', series)).toEqual([
    'cdc_relay_lag_second',
    'cdc_relay_lag_second{job}',
    'cdc_relay_lanes{at}',
    '{topic}',
  ]);
});
