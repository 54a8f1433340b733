import type { DatabaseOptions, DatabaseServer, KafkaCluster, KafkaOptions, MysqlOptions } from './handles.ts';
import { startLocalKafka } from './local-kafka.ts';
import { startLocalMariadb } from './local-mariadb.ts';
import { startLocalMysql } from './local-mysql.ts';
import { follow } from './replica.ts';

export async function startMysql(options: MysqlOptions = {}): Promise<DatabaseServer> {
  const { replicaOf, ...rest } = options;
  if (replicaOf === undefined) return startLocalMysql(rest);
  const server = await startLocalMysql({ serverId: 2, ...rest });
  try {
    await follow(server, replicaOf);
    return server;
  } catch (error) {
    await server.dispose();
    throw error;
  }
}

export function startMariadb(options: DatabaseOptions = {}): Promise<DatabaseServer> {
  return startLocalMariadb(options);
}

export function startKafka(options: KafkaOptions = {}): Promise<KafkaCluster> {
  return startLocalKafka(options);
}
