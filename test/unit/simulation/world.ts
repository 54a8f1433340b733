import type { Fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import { runRelay } from '../../../src/relay/relay.ts';
import { Broker } from './broker.ts';
import { EventLoop } from './event-loop.ts';
import { Leadership } from './leadership.ts';
import { Life } from './life.ts';
import type { Plan } from './plan.ts';
import { settingsFor } from './relay-settings.ts';
import type { Entry } from './server-log.ts';
import { Server } from './server.ts';
import { SimulatedPublisher } from './simulated-publisher.ts';
import { SimulatedSource } from './simulated-source.ts';
import { SimulatedStore } from './simulated-store.ts';
import { Watch } from './watch.ts';

/** One process, and how to end it. */
export interface Relay {
  readonly life: Life;
  readonly source: SimulatedSource;
  readonly stop: AbortController;
  /** Null: ended as told; undefined: not ended. */
  end: Fault | null | undefined;
}

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
    this.server = new Server(this.loop, plan.writes);
    this.broker = new Broker({ orders: 2, payments: 1 });
    this.watch = new Watch(this.server, this.broker, plan, this.trace);
    this.leadership = new Leadership(this.server);
  }

  startRelay(): void {
    const life = new Life(`relay ${this.relays.length + 1}`, this.loop);
    const source = new SimulatedSource(this.server.log, life);
    const relay: Relay = { life, source, stop: new AbortController(), end: undefined };
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
    };
    void runRelay(deps, relay.stop.signal).then((end) => {
      relay.end = end;
      this.trace(() => `${life.name} ends${end === null ? '' : `: ${end.code} ${end.detail} ${causeOf(end)}`}`);
    });
  }

  /** The process that has the lock; the last one where none has. */
  leader(): Relay | undefined {
    const { leader } = this.leadership;
    return (
      this.relays.find(({ life }) => life === leader) ?? this.relays.findLast(({ life }) => life.state === 'running')
    );
  }

  #logOf(life: Life): Log {
    const line = (event: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      this.trace(() => `${life.name} says ${event} ${JSON.stringify(fields)}`);
      if (event === 'relay-state') life.isPaused = fields['to'] === 'paused';
      // It begins anew, if only to rest again.
      if (event === 'resumed' || event === 'relay-waits' || event === 'leadership-lost') life.isPaused = false;
      // What was on its way could not be settled in time: some of it is sent again.
      if (event === 'term-ended' && fields['code'] === 'PAUSED') this.watch.faulted();
    };
    const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
    return log;
  }
}

function causeOf({ cause }: Fault): string {
  return cause instanceof Error ? (cause.stack ?? '') : '';
}
