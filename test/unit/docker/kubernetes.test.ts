import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { DOCKER, settingsOf, text } from './given-config.ts';
import { of } from './last-stage.ts';

const objects = readdirSync(join(DOCKER, 'kubernetes')).flatMap((file) =>
  parseAllDocuments(text(join('kubernetes', file))).map((document) => {
    expect(document.errors, file).toEqual([]);
    return z
      .looseObject({ kind: z.string(), metadata: z.object({ name: z.string() }), spec: z.looseObject({}).optional() })
      .parse(document.toJS());
  }),
);
const object = (kind: string) => objects.find((each) => each.kind === kind)!;

const probe = z.object({ httpGet: z.object({ path: z.string(), port: z.literal('http') }) });
const podSpec = z.object({
  terminationGracePeriodSeconds: z.int().optional(),
  automountServiceAccountToken: z.literal(false),
  securityContext: z.object({
    runAsNonRoot: z.literal(true),
    runAsUser: z.literal(10_001),
    fsGroup: z.literal(10_001),
  }),
  affinity: z.object({ podAntiAffinity: z.unknown() }).optional(),
  containers: z.tuple([
    z.object({
      securityContext: z.object({
        readOnlyRootFilesystem: z.literal(true),
        allowPrivilegeEscalation: z.literal(false),
        capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
      }),
      resources: z.object({ requests: z.object({ memory: z.string(), cpu: z.string() }), limits: z.unknown() }),
      startupProbe: probe.optional(),
      livenessProbe: probe.optional(),
      readinessProbe: probe.optional(),
      volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string(), readOnly: z.literal(true) })),
    }),
  ]),
  volumes: z.array(
    z.union([
      z.object({ name: z.string(), configMap: z.object({ name: z.string() }) }),
      z.object({ name: z.string(), secret: z.object({ secretName: z.string(), defaultMode: z.int() }) }),
    ]),
  ),
});
const pod = (kind: string) =>
  z.object({ template: z.object({ metadata: z.unknown(), spec: podSpec }) }).parse(object(kind).spec).template.spec;
const config = z.object({ data: z.record(z.string(), z.string()) }).parse(object('ConfigMap')).data['cdc-relay.yaml'];
const secrets = z.object({ stringData: z.record(z.string(), z.string()) }).parse(object('Secret')).stringData;

test('what there is', () => {
  expect(objects.map(({ kind }) => kind).toSorted()).toEqual([
    ...['ConfigMap', 'Deployment', 'Job', 'PodDisruptionBudget', 'Secret', 'Service', 'ServiceMonitor'],
  ]);
});

test('two replicas apart from each other, one of which may be away', () => {
  expect(object('Deployment').spec).toMatchObject({
    replicas: 2,
    strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  });
  expect(pod('Deployment').affinity).toBeDefined();
  expect(object('PodDisruptionBudget').spec).toMatchObject({ maxUnavailable: 1 });
});

test('liveness is the event loop, readiness is the relay; a stop has more time than it takes', () => {
  const { terminationGracePeriodSeconds: graceSeconds = 30, containers } = pod('Deployment');
  const [{ startupProbe, livenessProbe, readinessProbe }] = containers;
  const paths = [startupProbe, livenessProbe, readinessProbe].map((each) => each?.httpGet.path);
  expect(paths).toEqual(['/livez', '/livez', '/readyz']);
  expect(graceSeconds * 1_000).toBeGreaterThan(settingsOf(config).relay.shutdownMs + 5_000);
});

test.each(['Deployment', 'Job'])(
  '%s: the configuration is where the image looks, each secret where it says',
  (kind) => {
    const { containers, volumes } = pod(kind);
    const [{ volumeMounts }] = containers;
    const mounted = (of: 'configMap' | 'secret'): string => {
      const volume = volumes.find((each) => of in each)!;
      return volumeMounts.find(({ name }) => name === volume.name)!.mountPath;
    };
    expect(mounted('configMap')).toBe(of('WORKDIR')[0].split(' ')[1]);
    const files = [...config.matchAll(/File: (\S+)/g)].map(([, file]) => file);
    expect(files).toHaveLength(2);
    for (const file of files) {
      expect(dirname(file)).toBe(mounted('secret'));
      expect(Object.keys(secrets)).toContain(file.slice(dirname(file).length + 1));
    }
  },
);

test('the configuration of the ConfigMap is good; probes and Prometheus reach it', () => {
  const { http } = settingsOf(config);
  expect(http).toMatchObject({ host: '0.0.0.0', port: 9_465 });
  expect(object('Service').spec).toMatchObject({ ports: [{ name: 'http', port: http.port }] });
  expect(object('ServiceMonitor').spec).toMatchObject({
    endpoints: [{ port: 'http', path: '/metrics', authorization: { credentials: { key: 'http-token' } } }],
  });
});
