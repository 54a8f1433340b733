import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { DOCKER, ROOT, settingsOf, text } from './given-config.ts';

const compose = z
  .object({
    services: z.record(
      z.string(),
      z.object({
        image: z.string(),
        command: z.array(z.string()).optional(),
        read_only: z.boolean().optional(),
        cap_drop: z.array(z.string()).optional(),
        secrets: z.array(z.string()).optional(),
        volumes: z.array(z.string()).optional(),
        ports: z.array(z.string()).optional(),
        environment: z.record(z.string(), z.unknown()).optional(),
        healthcheck: z.object({ test: z.array(z.string()) }).optional(),
        stop_grace_period: z.string().optional(),
      }),
    ),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
  })
  .parse(parse(text('compose.yaml'), { merge: true }));
const services = Object.entries(compose.services).map(([name, service]) => ({ name, ...service }));
const relays = services.filter(({ image }) => image === 'cdc-relay:local');

test('two relays and what they need, what shows it, and who makes and takes rows', () => {
  expect(services.map(({ name }) => name)).toEqual([
    ...['mysql', 'kafka', 'migrate', 'relay', 'relay-standby'],
    ...['producer', 'consumer', 'prometheus', 'grafana'],
  ]);
});

test.each(services)('$name: ports on loopback, files that there are, secrets by file', (service) => {
  expect(service.image).toMatch(/:[\w.]*\d|:local$/);
  for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
  for (const volume of service.volumes ?? []) {
    const [source] = volume.split(':');
    if (source.startsWith('.')) expect(existsSync(join(DOCKER, source)), volume).toBe(true);
  }
  for (const secret of service.secrets ?? []) {
    expect(existsSync(join(DOCKER, compose.secrets[secret].file)), secret).toBe(true);
  }
  for (const name of Object.keys(service.environment ?? {})) expect(name).not.toMatch(/(PASSWORD|TOKEN)$/);
});

test.each(relays)('$name cannot write, has no rights, and ends softly', (service) => {
  expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
  if (service.name === 'migrate') return;
  const { relay } = settingsOf(text('compose/cdc-relay.yaml'));
  expect(Number(/^(\d+)s$/.exec(service.stop_grace_period!)?.[1]) * 1_000).toBeGreaterThan(relay.shutdownMs + 2_000);
  expect(service.healthcheck!.test.join(' ')).toContain('/readyz');
});

test("the relays' configuration is good, and MySQL has the settings of the README", () => {
  const settings = settingsOf(text('compose/cdc-relay.yaml'));
  expect(settings).toMatchObject({ mysql: { host: 'mysql' }, kafka: { brokers: ['kafka:9092'] } });
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const flags = compose.services['mysql'].command!;
  for (const [, name, value] of readme.matchAll(/^ +((?:log_bin|binlog|gtid|enforce)\w*) *= (\w+)$/gm)) {
    expect(flags).toContain(`--${name.replaceAll('_', '-')}=${value}`);
  }
  const grants = [...readme.matchAll(/^ *GRANT .* TO 'cdc_relay'.*;$/gm)].map(([line]) => line.trim());
  expect(grants.length).toBeGreaterThan(2);
  for (const grant of grants) expect(text('compose/mysql-users.sh')).toContain(grant);
});

test('Prometheus scrapes each relay of compose, with the token, into the job that the alerts know', () => {
  const { scrape_configs: jobs } = parse(text('prometheus/prometheus.yaml')) as { scrape_configs: unknown[] };
  const targets = relays.filter(({ name }) => name !== 'migrate').map(({ name }) => `${name}:9465`);
  expect(jobs).toEqual([
    {
      job_name: 'cdc-relay',
      authorization: { credentials_file: '/run/secrets/http-token' },
      static_configs: [{ targets }],
    },
  ]);
});
