import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isTenth } from '../../stack/full.ts';
import { baseImage, buildImage, docker, noImagesBecause } from '../../stack/image.ts';
import { freePort } from '../../stack/ports.ts';
import { say } from '../../stack/progress.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';

const IMAGE = `cdc-relay:test-${process.pid}`;
const CONFINED = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--network=host'];
const why = isTenth ? 'only with --full' : await noImagesBecause();

const inspected = z.tuple([
  z.object({
    Size: z.int(),
    Config: z.object({ User: z.string(), WorkingDir: z.string(), Healthcheck: z.unknown().optional() }).optional(),
  }),
]);
const state = z.object({
  Status: z.string(),
  ExitCode: z.int(),
  Health: z.object({ Status: z.string() }).optional(),
});

describe.skipIf(why !== null)(`the image${why === null ? '' : ` (${why})`}`, () => {
  const containers: string[] = [];
  let bed: RelayBed;
  let scratch: string;

  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'cdc-relay-image-'));
    bed = await RelayBed.open();
    await buildImage(IMAGE);
  }, 600_000);

  afterAll(async () => {
    if (containers.length > 0) await docker('rm', '--force', ...containers);
    await docker('image', 'rm', '--force', IMAGE);
    await bed[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true });
  });

  /** A container with the bed's configuration where the image looks for it. */
  async function start(...command: string[]): Promise<string> {
    const port = await freePort();
    const file = join(scratch, `${port}.yaml`);
    const serverId = 3_000_000_000 + port;
    writeFileSync(file, JSON.stringify(bed.config({ start: 'pending', mysql: { serverId }, http: { port } })));
    const mount = `--volume=${file}:/etc/cdc-relay/cdc-relay.yaml:ro`;
    const told = ['--env', `CDC_RELAY_HTTP_PORT=${port}`, '--health-interval=1s'];
    const container = (await docker('run', '--detach', ...CONFINED, mount, ...told, IMAGE, ...command)).trim();
    containers.push(container);
    return container;
  }

  const stateOf = async (container: string): Promise<z.infer<typeof state>> =>
    state.parse(JSON.parse(await docker('inspect', '--format={{json .State}}', container)));

  async function healthy(container: string): Promise<void> {
    const isHealthy = async (): Promise<boolean> => {
      const { Status: status, Health: health } = await stateOf(container);
      if (status !== 'running') throw new Error(`it has ended: ${await docker('logs', container)}`);
      return health?.Status === 'healthy';
    };
    await until(isHealthy, { withinMs: 30_000, what: 'a healthy container', everyMs: 200 });
  }

  /** A program of the image's Node, as root where nothing may be hidden from it. */
  const script = (code: string, ...options: string[]): Promise<string> =>
    docker('run', '--rm', ...options, '--entrypoint=node', IMAGE, '-e', code);

  test('it is the base and little more, and has neither sources, tools nor secrets', async () => {
    const size = async (image: string) => inspected.parse(JSON.parse(await docker('image', 'inspect', image)))[0];
    const [own, base] = [await size(IMAGE), await size(baseImage())];
    say(`${IMAGE}: ${Math.round(own.Size / 1e6)} MB, ${Math.round((own.Size - base.Size) / 1e6)} MB over its base`);
    expect(own.Size - base.Size).toBeLessThan(60e6);
    expect(own.Config).toMatchObject({ User: '10001:10001', WorkingDir: '/etc/cdc-relay' });
    const gone = [
      '/app/src',
      '/app/node_modules/typescript',
      '/app/node_modules/vitest',
      '/app/.npmrc',
      '/root/.npmrc',
    ];
    const there = `console.log(${JSON.stringify(gone)}.filter((path) => require('fs').existsSync(path)).join())`;
    expect(await script(there, '--user=0')).toBe('\n');
    expect(await docker('history', '--no-trunc', IMAGE)).not.toMatch(/BEGIN CERTIFICATE|_auth|registry/);
  });

  test('its user owns nothing in it, even where the file system is not read-only', async () => {
    const writes = `for (const place of ['/app', '/app/dist/cli.js', '/etc/cdc-relay', '/usr/local/bin'])
      try { require('fs').accessSync(place, require('fs').constants.W_OK); console.log(place) } catch {}`;
    expect(await script(writes)).toBe('');
  });

  test('without a configuration it says what is missing, and ends', async () => {
    await expect(docker('run', '--rm', ...CONFINED, IMAGE)).rejects.toThrow('config: 7 faults');
    expect(await docker('run', '--rm', ...CONFINED, IMAGE, '--version')).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('it migrates, moves rows, is healthy leading and standing by, hands over, and stops softly', async () => {
    const migrate = await start('migrate');
    expect(await docker('wait', migrate)).toBe('0\n');

    const leader = await start();
    await healthy(leader);
    const insert = (from: number) =>
      bed.sql(
        `INSERT INTO outbox (topic, aggregate_id, payload)
           SELECT ?, CONCAT('order-', n % 7), JSON_OBJECT('n', n) FROM
           (WITH RECURSIVE numbers (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) SELECT n FROM numbers) all_numbers`,
        [bed.topics[0], from, from + 499],
      );
    await insert(0);
    await bed.retired();
    expect(await docker('exec', leader, 'cdc-relay', 'status')).toMatch(/^FLOWING /);

    const standby = await start();
    await healthy(standby);
    const ready = `fetch('http://127.0.0.1:' + process.env.CDC_RELAY_HTTP_PORT + '/readyz').then((answer) => answer.text()).then(console.log)`;
    const says = () => docker('exec', standby, 'node', '-e', ready);
    await until(async () => (await says()).includes('"ready":true,"state":"STANDBY"'), {
      withinMs: 20_000,
      what: 'STANDBY',
    });

    // What does not end by itself is killed then, and has another exit code.
    await docker('stop', '--time=60', leader);
    expect(await stateOf(leader)).toMatchObject({ Status: 'exited', ExitCode: 0 });

    await insert(500);
    await bed.retired();
    await docker('stop', '--time=60', standby);
    expect(await stateOf(standby)).toMatchObject({ Status: 'exited', ExitCode: 0 });
    expect(await bed.expectDelivered()).toMatchObject({ committed: 1_000, lost: 0, duplicates: 0 });
  }, 120_000);
});
