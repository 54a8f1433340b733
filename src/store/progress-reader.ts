import type { Clock } from '../model/clock.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { LogHeadroom, OutboxProgress, Progress, ProgressReader, Surroundings } from '../model/progress.ts';
import type { Position } from '../model/position.ts';
import { ConnectionCounts } from '../model/server-counts.ts';
import type { Settings } from '../model/settings.ts';
import type { ServerFacts } from '../model/store.ts';
import { type BinlogFile, readBinlogFiles } from './binlog-files.ts';
import { lockName } from './leadership.ts';
import { expiryColumns, logHeadroom } from './log-headroom.ts';
import { outboxFacts } from './outbox-facts.ts';
import { type RelayFacts, readRelayFacts } from './relay-facts.ts';
import { readLogEnd, readServerFacts } from './server.ts';
import type { Session } from './session.ts';
import { SessionSlot } from './session-slot.ts';
import { readStandbys } from './standbys.ts';
import { readWaitingJobs } from './waiting-jobs.ts';
import { whereAllowed } from './where-allowed.ts';

/** Plain reads by indexes, over a connection of its own, without a lock. */
export function createProgressReader(
  settings: Settings,
  clock: Clock,
  log: Log,
  counts = new ConnectionCounts(),
): ProgressReader {
  const { mysql, relay } = settings;
  const slot = new SessionSlot({ mysql, takeOverMs: relay.takeOverMs, clock, log, counts });
  const outboxes = settings.outboxes.map(outboxFacts);
  let server: SeenServer | null = null;
  return {
    read: (wanted) =>
      slot.use(async (session): Promise<Progress> => {
        // Behind one address there may be another server after each connect.
        if (server?.session !== session) server = await SeenServer.meet(session, settings);
        const relay = await server.relay();
        const head = await server.head();
        const beganMs = clock.nowMs();
        const waiting = wanted.outboxes ? await waitingIn(session, outboxes) : null;
        const countedMs = clock.nowMs();
        const surroundings = wanted.surroundings ? await server.surroundings() : null;
        const { serverMs, leader, paused } = relay;
        return {
          ...{ serverMs, head, leader, paused, surroundings },
          purge: head === null ? null : await server.headroom(relay, head),
          outboxes: waiting,
          outboxesTookMs: countedMs - beganMs,
          surroundingsTookMs: clock.nowMs() - countedMs,
        };
      }),
    close: () => slot.close(),
  };
}

async function waitingIn(
  session: Session,
  outboxes: readonly ReturnType<typeof outboxFacts>[],
): Promise<(OutboxProgress | null)[]> {
  const waiting: (OutboxProgress | null)[] = [];
  for (const read of outboxes) waiting.push(read === null ? null : await read(session));
  return waiting;
}

/** A server as one session sees it. */
class SeenServer {
  readonly session: Session;
  readonly #settings: Settings;
  readonly #facts: ServerFacts;
  readonly #expiry: string;
  #files: readonly BinlogFile[] | null = null;

  private constructor(session: Session, settings: Settings, facts: ServerFacts, expiry: string) {
    this.session = session;
    this.#settings = settings;
    this.#facts = facts;
    this.#expiry = expiry;
  }

  static async meet(session: Session, settings: Settings): Promise<SeenServer> {
    return new SeenServer(session, settings, await readServerFacts(session), await expiryColumns(session));
  }

  relay(): Promise<RelayFacts> {
    return readRelayFacts(this.session, this.#settings, this.#expiry);
  }

  head(): Promise<Position | null> {
    return whereAllowed(readLogEnd(this.session, this.#facts));
  }

  async surroundings(): Promise<Surroundings> {
    const { mysql, relay } = this.#settings;
    this.#files = await whereAllowed(readBinlogFiles(this.session));
    return {
      standbys: await readStandbys(this.session, this.#facts, lockName(mysql.database, relay.name)),
      jobs: await readWaitingJobs(this.session, this.#settings),
      oldestParkedMs: await this.#oldestParkedMs(),
    };
  }

  /** Null: no position is saved, or it is one of another server. */
  async headroom({ checkpoint, expiry, serverMs }: RelayFacts, head: Position): Promise<LogHeadroom | null> {
    if (checkpoint === null || checkpoint.serverUuid !== this.session.serverUuid) return null;
    // Only the last file grows: the list is good until there is another one.
    if (this.#files?.at(-1)?.name !== head.file) this.#files = await whereAllowed(readBinlogFiles(this.session));
    const { lastCommitMs } = checkpoint;
    return logHeadroom({ checkpoint, lastCommitMs, head, files: this.#files, nowMs: serverMs }, expiry);
  }

  async #oldestParkedMs(): Promise<number | null> {
    const { mysql, relay } = this.#settings;
    const sql = `SELECT TIMESTAMPDIFF(MICROSECOND, MIN(since), UTC_TIMESTAMP(6)) DIV 1000 AS oldest_ms
      FROM ${quoteTable(mysql.database, 'cdc_relay_parked')} WHERE relay = ?`;
    const [row] = await this.session.rows('looking at what is parked', sql, [relay.name]);
    return row['oldest_ms'] === null ? null : Math.max(0, Number(row['oldest_ms']));
  }
}
