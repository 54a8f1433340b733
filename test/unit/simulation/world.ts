import type { Fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import { runRelay } from '../../../src/relay/relay.ts';
import { Broker } from './broker.ts';
import { EventLoop } from './event-loop.ts';
import { Leadership } from './leadership.ts';
import { Life } from './life.ts';
import { DEAD_LETTERS, type Plan } from './plan.ts';
import { settingsFor } from './relay-settings.ts';
import type { Entry } from './server-log.ts';
import { Server } from './server.ts';
import { SimulatedJobs } from './simulated-jobs.ts';
import { SimulatedPublisher } from './simulated-publisher.ts';
import { SimulatedSource } from './simulated-source.ts';
import { SimulatedStore } from './simulated-store.ts';
import type { TableRow } from './table.ts';
import { Watch } from './watch.ts';

/** One process, and how to end it. */
export interface Relay {
  readonly life: Life;
  readonly source: SimulatedSource;
  readonly stop: AbortController;
  /** Null: ended as told; undefined: not ended. */
  end: Fault | null | undefined;
  /** When it has ended by itself, or was made to. */
  onEnd: () => void;
}

/** Of the process, as it is configured. */
export const SHUTDOWN_MS = 8_000;

export type Trace = (line: () => string) => void;

/** Everything around the relays, and the relays. */
export class World {
  readonly plan: Plan;
  readonly loop: EventLoop;
  readonly server: Server;
  readonly broker: Broker;
  readonly watch: Watch;
  readonly leadership: Leadership;
  readonly relays: Relay[] = [];
  readonly trace: Trace;
  /** What is committed when all else is done. */
  lastWrite: Entry | null = null;

  constructor(plan: Plan, trace: Trace = () => undefined) {
    this.plan = plan;
    this.trace = (line) => trace(() => `${String(this.loop.nowMs).padStart(6)} ms  ${line()}`);
    this.loop = new EventLoop(plan.delaysMs);
    this.server = new Server(this.loop, plan);
    this.broker = new Broker({ orders: 2, payments: 1, [DEAD_LETTERS]: 1 });
    this.watch = new Watch(this.server, this.broker, plan, this.trace);
    this.leadership = new Leadership(this.server);
  }

  startRelay(): void {
    const life = new Life(`relay ${this.relays.length + 1}`, this.loop);
    const source = new SimulatedSource(this.server.log, life);
    const relay: Relay = { life, source, stop: new AbortController(), end: undefined, onEnd: () => undefined };
    this.relays.push(relay);
    this.trace(() => `${life.name} starts`);
    const deps = {
      settings: settingsFor(this.plan),
      source,
      publisher: new SimulatedPublisher(this.broker, life, this.watch),
      store: new SimulatedStore(this.server, life, this.leadership, this.plan.mode === 'tail'),
      clock: life.clock,
      log: this.#logOf(life),
      duties: [],
      jobs: new SimulatedJobs(this.server, life),
    };
    void runRelay(deps, relay.stop.signal).then((end) => {
      relay.end = end;
      this.#ended(relay);
      this.trace(() => `${life.name} ends${end === null ? '' : `: ${end.code} ${end.detail} ${causeOf(end)}`}`);
    });
  }

  /** What people do to a failed row. `isMended`: it will not be refused any more. */
  actOn(row: TableRow, action: 'retry' | 'discard', isMended: boolean): void {
    this.trace(() => `somebody does ${action} of r${row.number}${isMended ? ', which is mended' : ''}`);
    this.watch.actedOn(row);
    if (action === 'discard') {
      this.server.discard(row);
      return;
    }
    row.isMended ||= isMended;
    row.status = 'pending';
    row.attempts = 0;
    row.refusalsForgiven = this.broker.refusalsOf(row);
  }

  /** A soft stop: what is on its way is settled, and the process ends. */
  stop(relay: Relay, onEnd: () => void = () => undefined): void {
    const { life, stop } = relay;
    this.trace(() => `${life.name} is told to stop`);
    relay.onEnd = onEnd;
    life.inside(() => stop.abort());
    this.loop.in(SHUTDOWN_MS, () => {
      if (relay.end !== undefined || life.state === 'dead') return;
      this.trace(() => `${life.name} is ended: it has not stopped`);
      this.watch.endedHard(life.name);
      life.die();
      onEnd();
    });
  }

  #ended({ life, stop, end, onEnd }: Relay): void {
    if (end !== null || !stop.signal.aborted) return;
    // They are left for the next start, which sends them again.
    if (life.held.size > 0) this.watch.faulted();
    // One that has waited in vain says nothing of what the leader does.
    if (this.leadership.leader === null) this.watch.cameToRest(life.name);
    life.die();
    onEnd();
  }

  /** The process that has the lock; the last one where none has. */
  leader(): Relay | undefined {
    const { leader } = this.leadership;
    return (
      this.relays.find(({ life }) => life === leader) ??
      this.relays.findLast(({ life, stop }) => life.state === 'running' && !stop.signal.aborted)
    );
  }

  #logOf(life: Life): Log {
    const line = (event: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      this.trace(() => `${life.name} says ${event} ${JSON.stringify(fields)}`);
      if (event === 'relay-state') life.isPaused = fields['to'] === 'paused';
      if (life.isPaused) this.watch.cameToRest(life.name);
      // It begins anew, if only to rest again.
      if (event === 'resumed' || event === 'relay-waits' || event === 'leadership-lost') life.isPaused = false;
      if (event === 'sent-rows-missing') this.watch.untrue(`${life.name} misses rows that are there`);
      // What was on its way could not be settled in time: some of it is sent again.
      const isHard = fields['code'] === 'PAUSED' || (fields['code'] === 'RESYNC' && life.held.size > 0);
      if (event === 'term-ended' && isHard) this.watch.faulted();
    };
    const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
    return log;
  }
}

function causeOf({ cause }: Fault): string {
  return cause instanceof Error ? (cause.stack ?? '') : '';
}
