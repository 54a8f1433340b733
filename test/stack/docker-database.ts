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

export const MYSQL_IMAGE = {
  name: 'mysql',
  image: 'mysql:9',
  flags: MYSQL_FLAGS,
  environment: { MYSQL_ALLOW_EMPTY_PASSWORD: 'yes', MYSQL_ROOT_HOST: '%' },
};

export const MARIADB_IMAGE = {
  name: 'mariadb',
  image: 'mariadb:10.11',
  flags: MARIADB_FLAGS,
  environment: { MARIADB_ALLOW_EMPTY_ROOT_PASSWORD: 'yes', MARIADB_ROOT_HOST: '%' },
};

export async function startDockerDatabase(
  docker: DockerHost,
  product: typeof MYSQL_IMAGE | typeof MARIADB_IMAGE,
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
