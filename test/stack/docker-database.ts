import { alias, ContainerServer, type DockerHost } from './docker.ts';
import type { DatabaseOptions, DatabaseServer } from './handles.ts';
import { databaseFlags } from './local-database.ts';
import { MARIADB_FLAGS } from './local-mariadb.ts';
import { MYSQL_FLAGS } from './local-mysql.ts';
import { freePort } from './ports.ts';
import { databaseVersion } from './ready.ts';

const INSIDE = 3306;
const READY_MS = 120_000;
const ROOT = { user: 'root', password: '' };

/** The image can be another one: CDC_RELAY_TEST_MYSQL_IMAGE=mysql:8.0, CDC_RELAY_TEST_MARIADB_IMAGE=mariadb:10.6. */
export interface DatabaseImage {
  readonly name: string;
  readonly image: string;
  /** Somebody asked for this one: no other server stands in for it. */
  readonly isAsked: boolean;
  readonly flags: readonly string[];
  readonly environment: Record<string, string>;
}

export const MYSQL_IMAGE: DatabaseImage = {
  name: 'mysql',
  ...imageOf('CDC_RELAY_TEST_MYSQL_IMAGE', 'mysql:9'),
  flags: MYSQL_FLAGS,
  environment: { MYSQL_ALLOW_EMPTY_PASSWORD: 'yes', MYSQL_ROOT_HOST: '%' },
};

export const MARIADB_IMAGE: DatabaseImage = {
  name: 'mariadb',
  ...imageOf('CDC_RELAY_TEST_MARIADB_IMAGE', 'mariadb:10.11'),
  flags: MARIADB_FLAGS,
  environment: { MARIADB_ALLOW_EMPTY_ROOT_PASSWORD: 'yes', MARIADB_ROOT_HOST: '%' },
};

function imageOf(variable: string, usual: string): Pick<DatabaseImage, 'image' | 'isAsked'> {
  const asked = process.env[variable] ?? '';
  return asked === '' ? { image: usual, isAsked: false } : { image: asked, isAsked: true };
}

export async function startDockerDatabase(
  docker: DockerHost,
  product: DatabaseImage,
  options: DatabaseOptions,
): Promise<DatabaseServer> {
  const { host } = docker;
  const port = await freePort();
  const certificate = Object.entries(options.certificate ?? {}).map(([part, content]) => ({
    ...{ part, content: String(content), target: `/etc/${part}.pem` },
  }));
  const inside = alias(product.name);
  let version = '';
  const server = await ContainerServer.start(docker, {
    name: `${product.image} on port ${port}`,
    image: product.image,
    alias: inside,
    environment: product.environment,
    command: [
      ...databaseFlags(options),
      ...product.flags,
      ...certificate.map(({ part, target }) => `--ssl-${part}=${target}`),
      ...(options.flags ?? []),
    ],
    ports: { [INSIDE]: port },
    files: certificate,
    readyMs: READY_MS,
    ready: async () => {
      version = await databaseVersion({ ...ROOT, host, port, tls: options.certificate !== undefined });
    },
  });
  return Object.assign(server, { ...ROOT, host, port, version, internal: { host: inside, port: INSIDE } });
}
