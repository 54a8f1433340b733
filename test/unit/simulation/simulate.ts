import { seededRandom } from '../../stack/seeded-random.ts';
import { beginFault, endMs } from './faults.ts';
import { AGGREGATES, type Plan } from './plan.ts';
import type { TableRow } from './table.ts';
import { isPoisoned, Broken } from './watch.ts';
import { type Relay, type Trace, World } from './world.ts';

/** When all is well, everything must be delivered within this time: a sweep whose looks are slow rests 100 times longer. */
const PATIENCE_MS = 3_000_000;
/** More events than this, and it is not time that is missing. */
const MAX_EVENTS = 60_000;
/** What is late by then is not on its way any more. */
const QUIET_MS = 400;
const OPERATOR_MS = 700;

/** Runs a plan to its end; throws `Broken` when a promise was. Not to be run twice at a time: it rules `Math.random`. */
export async function simulate(plan: Plan, trace?: Trace): Promise<World> {
  const random = Math.random;
  Math.random = seededRandom(plan.seed);
  try {
    const world = new World(plan, trace);
    await new Run(world).toTheEnd();
    return world;
  } finally {
    Math.random = random;
  }
}

class Run {
  readonly #world: World;
  readonly #calmMs: number;

  constructor(world: World) {
    this.#world = world;
    const { plan, loop } = world;
    loop.at(plan.startMs, () => world.startRelay());
    let atMs = 0;
    for (const [index, write] of plan.writes.entries()) {
      loop.at((atMs += write.afterMs), () => {
        world.server.commit(write, index);
        world.trace(() => `the application commits ${write.kind} ${this.#rowsOf(index)}`);
      });
    }
    for (const fault of plan.faults) loop.at(fault.atMs, () => beginFault(world, fault));
    if (plan.onExhausted === 'block') this.#operate();
    const ends = plan.faults.map(endMs);
    this.#calmMs = Math.max(plan.startMs, atMs, ...ends);
  }

  async toTheEnd(): Promise<void> {
    const { loop } = this.#world;
    await this.#until('everything is delivered', () => loop.nowMs > this.#calmMs && this.#isDelivered());
    // What was read last may park something yet.
    let quietMs = loop.nowMs + QUIET_MS;
    await this.#until('quiet', () => {
      if (!this.#isDelivered()) quietMs = loop.nowMs + QUIET_MS;
      return loop.nowMs >= quietMs;
    });
    await this.#probe();
    for (const relay of this.#alive()) relay.stop.abort();
    await this.#until('the relays have stopped', () => this.#alive().every(({ end }) => end !== undefined));
    const claimed = this.#world.server.rows.find(({ status }) => status === 'processing');
    if (claimed !== undefined) throw new Broken(`r${claimed.number} is still claimed when the relay has stopped`);
  }

  /** Nothing is parked any more: what comes now goes by the tail, without anybody's claim. */
  async #probe(): Promise<void> {
    const { server, plan, trace } = this.#world;
    if (plan.mode === 'sweep') return;
    const first = server.rows.length;
    trace(() => 'the application commits a row of each aggregate');
    const rows = AGGREGATES.map((_, aggregate) => ({ aggregate, delayMs: 0, valueBytes: 10, poison: null }));
    server.commit({ afterMs: 0, kind: 'plain', idsBefore: 0, visibleAfterMs: 0, rows }, plan.writes.length);
    this.#world.lastWrite = server.log.entries.at(-1)!;
    await this.#until('the last rows are delivered', () => {
      const swept = server.rows.slice(first).find(({ status }) => status === 'processing');
      if (swept !== undefined) throw new Broken(`${swept.topic} '${swept.key}' is parked for ever`);
      return this.#isDelivered();
    });
  }

  async #until(what: string, isSo: () => boolean): Promise<void> {
    const { loop, watch } = this.#world;
    const lastMs = Math.max(loop.nowMs, this.#calmMs) + PATIENCE_MS;
    while (!isSo()) {
      const isMore = await loop.step();
      watch.check();
      const halted = this.#world.relays.find(({ end, stop }) => end != null || (end === null && !stop.signal.aborted));
      if (halted !== undefined)
        throw new Broken(`${halted.life.name} halted: ${halted.end?.code} ${halted.end?.detail}`);
      if (!isMore || loop.nowMs > lastMs || loop.count > MAX_EVENTS) {
        throw new Broken(`not within ${PATIENCE_MS} ms: ${what}; ${this.#whatIsMissing()}`);
      }
    }
  }

  #isDelivered(): boolean {
    const { server, watch, plan } = this.#world;
    return (
      server.offsets !== null &&
      this.#isRead() &&
      server.parked.size <= (plan.mode === 'sweep' ? 1 : 0) &&
      server.jobs.every(({ state }) => state === 'done' || state === 'cancelled') &&
      server.rows.every((row) => this.#isAtItsEnd(row) && (row.status !== 'published' || watch.deliveries(row) > 0))
    );
  }

  /** Whatever the log still has could park something. */
  #isRead(): boolean {
    const { server, plan, leadership, relays } = this.#world;
    const relay = relays.find(({ life }) => life === leadership.leader);
    const last = server.log.entries.findLastIndex(({ kind }) => kind !== 'own');
    return plan.mode === 'sweep' || (relay !== undefined && relay.source.readThrough > last);
  }

  #isAtItsEnd(row: TableRow): boolean {
    const { plan, watch } = this.#world;
    if (plan.retire === 'keep') return watch.deliveries(row) > 0;
    return row.status === 'discarded' || row.status === this.#endOf(row);
  }

  #endOf(row: TableRow): TableRow['status'] {
    return isPoisoned(row) && this.#world.plan.onExhausted === 'release' ? 'failed' : 'published';
  }

  #whatIsMissing(): string {
    const { server, loop } = this.#world;
    const jobs = server.jobs.map(({ id, state }) => `job ${id} ${state}`);
    const rows = server.rows
      .filter((row) => !this.#isAtItsEnd(row))
      .map(({ number, status }) => `r${number} ${status}`);
    return `${[...rows, ...jobs].join(', ')}; parked: ${[...server.parked.keys()].join(', ')}; ${loop.count} events`;
  }

  #alive(): Relay[] {
    return this.#world.relays.filter(({ life }) => life.state !== 'dead');
  }

  /** Somebody looks at the failed rows now and then, and retries them when what ailed them is gone. */
  #operate(): void {
    const { loop, server } = this.#world;
    loop.in(OPERATOR_MS, () => {
      for (const row of server.rows) {
        if (row.status !== 'failed' || server.isHeld(row)) continue;
        this.#world.actOn(row, 'retry', true);
      }
      this.#operate();
    });
  }

  #rowsOf(index: number): string {
    const { server, plan } = this.#world;
    const rows = server.log.entries.at(-1)!.rows;
    if (rows.length === 0) return `${plan.writes[index].rows.length} rows`;
    return rows.map(({ number, id, topic, key }) => `r${number} (id ${id}, ${topic} '${key}')`).join(', ');
  }
}
