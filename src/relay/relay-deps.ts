import type { Clock } from '../model/clock.ts';
import type { MakeDuty } from '../model/duty.ts';
import type { Jobs } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import type { Publisher } from '../model/publisher.ts';
import type { Settings } from '../model/settings.ts';
import type { Source } from '../model/source.ts';
import type { RelayStats } from '../model/stats.ts';
import type { Store } from '../model/store.ts';
import type { SentRows } from './sent-rows.ts';

/** The outside world, as ports. */
export interface RelayDeps {
  readonly settings: Settings;
  readonly source: Source;
  readonly publisher: Publisher;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** What is counted goes there. */
  readonly stats?: RelayStats;
  readonly duties: readonly MakeDuty[];
  /** What people ask for. */
  readonly jobs?: Jobs;
  /** Of this process. */
  readonly sentRows?: SentRows;
}
