import { type DockerHost, dockerHost, hasImage } from './docker.ts';
import { type DatabaseImage, MARIADB_IMAGE, MYSQL_IMAGE, startDockerDatabase } from './docker-database.ts';
import { KAFKA_IMAGE, startDockerKafka } from './docker-kafka.ts';
import type { DatabaseOptions, DatabaseServer, KafkaCluster, KafkaOptions, MysqlOptions } from './handles.ts';
import { startLocalKafka } from './local-kafka.ts';
import { startLocalMariadb } from './local-mariadb.ts';
import { startLocalMysql, startLocalMysqlWithKeyring } from './local-mysql.ts';
import { follow } from './replica.ts';

/**
 * Servers of a test's own: containers where a Docker engine answers and has the images, else processes of this
 * machine. Each has its own port and data, and is gone when its test process is.
 */

/** A MySQL of the newest line. */
export async function startMysql(options: MysqlOptions = {}): Promise<DatabaseServer> {
  const { replicaOf, replicaBy = 'gtid', ...rest } = options;
  if (replicaOf === undefined) return mysql(rest);
  const server = await mysql({ serverId: 2, ...rest });
  try {
    await follow(server, replicaOf, { by: replicaBy });
    return server;
  } catch (error) {
    await server.dispose();
    throw error;
  }
}

/** A MySQL that has a keyring; null in a container, whose image brings none. */
export async function startMysqlWithKeyring(options: DatabaseOptions = {}): Promise<DatabaseServer | null> {
  return (await dockerWithDatabase(MYSQL_IMAGE)) === null ? startLocalMysqlWithKeyring(options) : null;
}

/** A MariaDB 10.11. */
export async function startMariadb(options: DatabaseOptions = {}): Promise<DatabaseServer> {
  const docker = await dockerWithDatabase(MARIADB_IMAGE);
  return docker === null ? startLocalMariadb(options) : startDockerDatabase(docker, MARIADB_IMAGE, options);
}

/** A Kafka cluster of one to three brokers (KRaft). Topics are created on purpose only. */
export async function startKafka(options: KafkaOptions = {}): Promise<KafkaCluster> {
  const docker = await dockerWith(KAFKA_IMAGE);
  return docker === null ? startLocalKafka(options) : startDockerKafka(docker, options);
}

async function mysql(options: DatabaseOptions): Promise<DatabaseServer> {
  const docker = await dockerWithDatabase(MYSQL_IMAGE);
  return docker === null ? startLocalMysql(options) : startDockerDatabase(docker, MYSQL_IMAGE, options);
}

async function dockerWithDatabase({ image, isAsked }: DatabaseImage): Promise<DockerHost | null> {
  const docker = await dockerWith(image);
  // A run that is said to be on 8.0 must not pass on something else.
  if (docker === null && isAsked) throw new Error(`no Docker engine that has or gets ${image}, which is asked for`);
  return docker;
}

async function dockerWith(image: string): Promise<DockerHost | null> {
  const docker = await dockerHost();
  return docker !== null && (await hasImage(docker, image)) ? docker : null;
}
