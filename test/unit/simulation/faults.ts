import type { JobSpec } from '../../../src/model/job.ts';
import { AGGREGATES, type PlannedFault, TOPICS } from './plan.ts';
import type { Server } from './server.ts';
import type { AskedJob } from './simulated-jobs.ts';
import { SHUTDOWN_MS, type World } from './world.ts';

/** While nothing but the tables can be read the log is looked for only now and then. */
const LOG_RETRY_MS = 11_000;

/** When the world is as it was; the log is looked for again only now and then. */
export function endMs(fault: PlannedFault): number {
  const lastsMs =
    'forMs' in fault
      ? fault.forMs
      : 'downMs' in fault
        ? fault.downMs
        : 'restMs' in fault
          ? fault.restMs + SHUTDOWN_MS
          : 0;
  // A purge tells only when the log is read anew; the term that follows takes its time.
  const isLate = fault.kind === 'log' || fault.kind === 'purge';
  return fault.atMs + lastsMs + (isLate ? LOG_RETRY_MS : 0);
}

/** Begins what a plan has in store, and sees to it that it ends. */
export function beginFault(world: World, fault: PlannedFault): void {
  const { loop, server, broker, watch, trace } = world;
  trace(() => `FAULT ${JSON.stringify(fault)}`);
  const over = (): void => trace(() => `over: ${fault.kind} of ${fault.atMs} ms`);
  switch (fault.kind) {
    case 'crash':
      watch.mayMix();
      world.leader()?.life.die();
      loop.in(fault.downMs, () => world.startRelay());
      break;
    case 'freeze': {
      const life = world.leader()?.life;
      if (life?.state !== 'running') break;
      watch.mayMix();
      life.freeze();
      world.startRelay();
      loop.in(fault.forMs, () => {
        over();
        life.goOn();
      });
      break;
    }
    case 'stop': {
      const { isAwaited, restMs } = fault;
      if (isAwaited) world.startRelay();
      const begin = (): void => {
        const relay = world.leader();
        if (relay === undefined) return;
        world.stop(relay, () => {
          if (!isAwaited) loop.in(restMs, () => world.startRelay());
        });
      };
      if (isAwaited) loop.in(restMs, begin);
      else begin();
      break;
    }
    case 'republish':
    case 'resync':
      ask(world, fault);
      break;
    case 'act':
      act(world, fault, loop.nowMs + fault.forMs);
      break;
    case 'lock':
      watch.mayMix();
      world.leadership.cut();
      break;
    case 'stream':
      world.leader()?.source.cut();
      break;
    case 'pause':
      server.pauses++;
      loop.in(fault.forMs, () => {
        over();
        server.pauses--;
      });
      break;
    case 'hold': {
      const row = server.rows.at(fault.row % Math.max(1, server.rows.length));
      if (row === undefined || server.isHeld(row)) break;
      row.holders++;
      loop.in(fault.forMs, () => {
        over();
        row.holders--;
      });
      break;
    }
    case 'partition': {
      const name = TOPICS[fault.topic];
      const { partitions } = broker.topics.get(name)!;
      const partition = partitions[fault.partition % partitions.length];
      partition.fault = fault.how;
      loop.in(fault.forMs, () => {
        over();
        partition.fault = null;
      });
      break;
    }
    case 'topic': {
      const topic = broker.topics.get(TOPICS[fault.topic])!;
      topic.isKnown = false;
      loop.in(fault.forMs, () => {
        over();
        topic.isKnown = true;
      });
      break;
    }
    case 'mysql':
      watch.mayMix();
      loop.unanswered.set(fault.call, fault.done);
      loop.in(fault.forMs, () => {
        over();
        loop.unanswered.delete(fault.call);
      });
      break;
    case 'deadlock':
      loop.deadlocks.add(fault.call);
      loop.in(fault.forMs, () => {
        over();
        loop.deadlocks.delete(fault.call);
      });
      break;
    case 'kafka':
      broker.isReachable = false;
      loop.in(fault.forMs, () => {
        over();
        broker.isReachable = true;
      });
      break;
    case 'purge':
      watch.faulted();
      server.log.purge();
      world.leader()?.source.cut();
      break;
    case 'log':
      world.leader()?.source.cut();
      server.log.isReadable = false;
      loop.in(fault.forMs, () => {
        over();
        server.log.isReadable = true;
      });
      break;
    case 'slow':
      loop.slowerMs.set(fault.call, fault.byMs);
      loop.in(fault.forMs, () => {
        over();
        loop.slowerMs.delete(fault.call);
      });
      break;
    case 'grow':
      broker.grow('orders', 4);
      broker.grow('payments', 2);
  }
}

function ask({ loop, server, trace }: World, fault: PlannedFault & { kind: 'republish' | 'resync' }): void {
  const id = BigInt(server.jobs.length + 1);
  const job: AskedJob = { id, spec: specOf(server, fault), state: 'queued', progress: null };
  server.jobs.push(job);
  if (fault.cancelMs === null) return;
  loop.in(fault.cancelMs, () => {
    const hasBegun = job.progress !== null && 'hasBegun' in job.progress;
    if (hasBegun || (job.state !== 'queued' && job.state !== 'running')) return;
    trace(() => `job ${id} is cancelled`);
    job.state = 'cancelled';
  });
}

function specOf({ log }: Server, fault: PlannedFault & { kind: 'republish' | 'resync' }): JobSpec {
  if (fault.kind === 'republish') {
    const aggregate = AGGREGATES.at(fault.aggregate)!.key;
    const filter = { outbox: null, ids: null, topic: null, sinceMs: null, untilMs: null };
    return { kind: 'republish', filter: { ...filter, aggregate: fault.aggregate < 0 ? null : aggregate } };
  }
  const place = log.entries.at(-fault.back)?.end;
  if (fault.back === 0 || place === undefined) return { kind: 'reconcile', from: { at: 'head' } };
  return { kind: 'reconcile', from: { at: 'position', ...place, gtidSet: null } };
}

const LOOK_MS = 20;

function act(world: World, fault: PlannedFault & { kind: 'act' }, untilMs: number): void {
  const { loop, server } = world;
  const row = server.rows.find((failed) => failed.status === 'failed' && !server.isHeld(failed));
  if (row !== undefined) world.actOn(row, fault.action, fault.isMended);
  else if (loop.nowMs < untilMs) loop.in(LOOK_MS, () => act(world, fault, untilMs));
}
