import type { Position } from '../model/position.ts';
import type { LogHeadroom, OutboxProgress, Surroundings } from '../model/progress.ts';
import type { Settings } from '../model/settings.ts';
import { readBinlogFiles } from './binlog-files.ts';
import { lockName } from './leadership.ts';
import { expiryColumns, logHeadroom } from './log-headroom.ts';
import { outboxFacts } from './outbox-facts.ts';
import { type ParkedFacts, readParked } from './parked-facts.ts';
import { readRelayFacts, type RelayFacts } from './relay-facts.ts';
import { readLogEnd, readServerFacts } from './server.ts';
import type { Session } from './session.ts';
import { readStandbys } from './standbys.ts';
import { readWaitingJobs } from './waiting-jobs.ts';
import { whereAllowed } from './where-allowed.ts';

/** Parked scopes that are looked at; more than people will read. */
const MOST_PARKED = 1_000;

/** What the database says of the relay, also when the relay is dead. Times are ages by the server's clock. */
export interface StatusFacts
  extends Pick<RelayFacts, 'leader' | 'checkpoint' | 'paused'>, Pick<Surroundings, 'standbys' | 'jobs'> {
  readonly server: { readonly uuid: string; readonly version: string };
  /** Null where there is no log, or the user may not ask. */
  readonly head: Position | null;
  /** Null: no position is saved, it is one of another server, or the user may not ask. */
  readonly purge: LogHeadroom | null;
  readonly outboxes: readonly OutboxFacts[];
  readonly parked: ParkedFacts;
}

export interface OutboxFacts {
  readonly table: string;
  /** Null where rows have no state. */
  readonly waiting: OutboxProgress | null;
}

/** Plain reads. Throws a `RelayError`. */
export async function readStatus(session: Session, settings: Settings): Promise<StatusFacts> {
  const server = await readServerFacts(session);
  const relay = await readRelayFacts(session, settings, await expiryColumns(session));
  const head = await whereAllowed(readLogEnd(session, server));
  const outboxes: OutboxFacts[] = [];
  for (const outbox of settings.outboxes) {
    const table = `${outbox.schema}.${outbox.table}`;
    outboxes.push({ table, waiting: (await outboxFacts(outbox)?.(session)) ?? null });
  }
  const { leader, checkpoint, paused } = relay;
  return {
    server: { uuid: server.serverUuid, version: server.version },
    ...{ leader, checkpoint, paused, head, outboxes },
    purge: await headroom(session, relay, head),
    standbys: await readStandbys(session, server, lockName(settings.mysql.database, settings.relay.name)),
    jobs: await readWaitingJobs(session, settings),
    parked: await readParked(session, settings, MOST_PARKED),
  };
}

/** For how long the checkpoint's binlog is there. */
export async function headroom(
  session: Session,
  { checkpoint, expiry, serverMs }: RelayFacts,
  head: Position | null,
): Promise<LogHeadroom | null> {
  if (head === null || checkpoint === null || checkpoint.serverUuid !== session.serverUuid) return null;
  const files = await whereAllowed(readBinlogFiles(session));
  const { lastCommitMs } = checkpoint;
  return logHeadroom({ checkpoint, lastCommitMs, head, files, nowMs: serverMs }, expiry);
}
