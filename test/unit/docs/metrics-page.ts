import { format, resolveConfig } from 'prettier';
import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client';

const HEAD = `# Metrics

\`GET /metrics\` (\`http.port\`, 9465 unless said otherwise) in Prometheus's text format. This page is made from the
metrics themselves: \`npm run test:unit -- metrics-page -u\` writes it, and the same test keeps it true.

- Counters count since the process began. Gauges of what only a leader knows are absent from the others.
- Labels are bounded: outbox tables of the configuration, up to 100 topics, closed sets of words, codes. Never a key,
  never a payload.
- Rows, pending and failed, and the lag come from the database, about once a second, not from counters: see
  \`cdc_relay_lag_seconds\`.
- \`process_*\` and \`nodejs_*\` (memory, CPU, event loop delay, garbage collection) are there too, as prom-client has
  them.

| Name | Type | Labels | What |
| ---- | ---- | ------ | ---- |
`;

const TAIL = `
## Health

| Path       | Answers                                                                                                 |
| ---------- | ------------------------------------------------------------------------------------------------------- |
| \`/livez\`   | 200 while the event loop turns                                                                          |
| \`/readyz\`  | 200 when the relay leads and rows flow, or stands by and reaches MySQL; else 503                        |
| \`/status\`  | JSON: state, lag, positions, what waits, what is parked and why; \`version\` is raised when a meaning changes |
| \`/metrics\` | this page                                                                                               |

\`/readyz\` says why not: \`{"ready": false, "state": "STUCK", "reasons": ["STUCK: tail", "LAG"]}\`.

| Reason          | Meaning                                                                                             |
| --------------- | --------------------------------------------------------------------------------------------------- |
| \`STUCK: part\`   | it leads, and the part has not moved for 10 s though something waits: start, tail, lane, kafka, flush, sweep |
| \`UNKNOWN\`       | MySQL has not answered for 10 s                                                                     |
| \`STARTING\`      | it leads, and does not flow yet                                                                     |
| \`PAUSED\`        | people have asked for a pause (\`cdc-relay pause\`)                                                   |
| \`STOPPED\`       | it drains, or has ended                                                                             |
| \`LAG\`           | the lag is over \`http.readyLagMs\`                                                                   |
| \`PENDING_ROWS\`  | more rows wait than \`outboxes[].limits.pendingRows\`                                                 |
| \`PENDING_AGE\`   | a row waits for longer than \`outboxes[].limits.pendingAgeMs\`                                        |

A topic that is missing or forbidden, or an aggregate whose row is retried, is parked and keeps nobody else waiting: that
is no reason, but \`cdc_relay_parked_scopes\` and \`cdc_relay_oldest_pending_seconds\` tell.

With \`http.token\` or \`http.tokenFile\`, \`/status\` and \`/metrics\` need \`Authorization: Bearer …\`; \`/livez\` and \`/readyz\`
never do.
`;

/** `docs/metrics.md`, as prettier has it. */
export async function metricsPage(registry: Registry): Promise<string> {
  const described: MetricObjectWithValues<MetricValue<string>>[] = await registry.getMetricsAsJSON();
  const labels = new Map(registry.getMetricsAsArray().map((metric) => [metric.name, labelsOf(metric)]));
  const lines = described.map(({ name, type, help }) => {
    const named = labels.get(name)!.map((label) => `\`${label}\``);
    return `| \`${name}\` | ${String(type)} | ${named.join(', ')} | ${help.replaceAll('|', '\\|')} |`;
  });
  const options = await resolveConfig(import.meta.filename);
  return format(`${HEAD}${lines.join('\n')}\n${TAIL}`, { ...options, parser: 'markdown' });
}

/** prom-client knows them, and does not tell. */
function labelsOf(metric: object): readonly string[] {
  return (metric as { labelNames?: readonly string[] }).labelNames ?? [];
}
