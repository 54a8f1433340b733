import { expect, test } from 'vitest';
import { Looked } from '../observability/sources.ts';
import { metricsPage } from './metrics-page.ts';

test('docs/metrics.md says what there is', async () => {
  const { metrics } = new Looked();
  await expect(await metricsPage(metrics.registry)).toMatchFileSnapshot('../../../docs/metrics.md');
});

test("names and units are Prometheus's: cdc_relay_, counters end in _total, a help that ends in a full stop", async () => {
  const { metrics } = new Looked();
  for (const { name, type, help } of await metrics.registry.getMetricsAsJSON()) {
    expect(name).toMatch(/^cdc_relay_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(String(type) === 'counter');
    expect(name).not.toMatch(/_ms|milli|_kb|percent/);
    expect(help).toMatch(/^.{10,}\.$/);
  }
});
