import { type BinlogSource, createBinlogSource } from '../binlog/binlog-source.ts';
import { createPublisher } from '../kafka/publisher.ts';
import { systemClock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { Publisher } from '../model/publisher.ts';
import { newServerCounts, type ServerCounts } from '../model/server-counts.ts';
import type { Settings } from '../model/settings.ts';
import { MysqlJobs } from '../store/jobs.ts';
import { MysqlStore } from '../store/mysql-store.ts';

const CLOSE_WITHIN_MS = 1_000;

/** MySQL and Kafka as the engine works with them. Nothing is connected before it is used. */
export interface Parts {
  readonly store: MysqlStore;
  readonly jobs: MysqlJobs;
  readonly publisher: Publisher;
  readonly source: BinlogSource;
  readonly servers: ServerCounts;
  close(): Promise<void>;
}

export function createParts(settings: Settings, log: Log): Parts {
  const { mysql, outboxes, kafka } = settings;
  const { maxTransactionBytes } = settings.relay;
  const servers = newServerCounts();
  const store = new MysqlStore(settings, systemClock, log, servers.mysql);
  const jobs = new MysqlJobs(settings, systemClock, log, servers.mysql.jobs);
  const publisher = createPublisher(kafka, log, servers.kafka);
  return {
    store,
    jobs,
    publisher,
    servers,
    source: createBinlogSource({ mysql, outboxes, maxTransactionBytes, log }),
    async close() {
      await publisher.close(CLOSE_WITHIN_MS);
      jobs.close();
      await store.close();
    },
  };
}
