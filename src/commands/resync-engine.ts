import { createBinlogSource } from '../binlog/binlog-source.ts';
import { createPublisher } from '../kafka/publisher.ts';
import { systemClock } from '../model/clock.ts';
import type { Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { runRelay } from '../relay/relay.ts';
import { MysqlJobs } from '../store/jobs.ts';
import { MysqlStore } from '../store/mysql-store.ts';

const CLOSE_WITHIN_MS = 1_000;

/**
 * The relay for as long as a job takes: where none leads, the command does. It moves live rows too, and neither listens
 * nor removes old rows. Until `stop` is aborted (null), or until a fault that needs a person.
 */
export async function leadForAWhile(settings: Settings, log: Log, stop: AbortSignal): Promise<Fault | null> {
  const store = new MysqlStore(settings, systemClock, log);
  const jobs = new MysqlJobs(settings, systemClock, log);
  const publisher = createPublisher(settings.kafka, log);
  const { mysql, outboxes } = settings;
  const { maxTransactionBytes } = settings.relay;
  const source = createBinlogSource({ mysql, outboxes, maxTransactionBytes, log });
  try {
    return await runRelay({ settings, source, publisher, store, jobs, clock: systemClock, log, duties: [] }, stop);
  } finally {
    await publisher.close(CLOSE_WITHIN_MS);
    jobs.close();
    await store.close();
  }
}
