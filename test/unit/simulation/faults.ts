import { type PlannedFault, TOPICS } from './plan.ts';
import type { World } from './world.ts';

/** While nothing but the tables can be read the log is looked for only now and then. */
const LOG_RETRY_MS = 11_000;

/** When the world is as it was; the log is looked for again only now and then. */
export function endMs(fault: PlannedFault): number {
  const lastsMs = 'forMs' in fault ? fault.forMs : 'downMs' in fault ? fault.downMs : 0;
  return fault.atMs + lastsMs + (fault.kind === 'log' ? LOG_RETRY_MS : 0);
}

/** Begins what a plan has in store, and sees to it that it ends. */
export function beginFault(world: World, fault: PlannedFault): void {
  const { loop, server, broker, watch, trace } = world;
  trace(() => `FAULT ${JSON.stringify(fault)}`);
  const over = (): void => trace(() => `over: ${fault.kind} of ${fault.atMs} ms`);
  switch (fault.kind) {
    case 'crash':
      watch.faulted();
      world.leader()?.life.die();
      loop.in(fault.downMs, () => world.startRelay());
      break;
    case 'freeze': {
      const life = world.leader()?.life;
      if (life?.state !== 'running') break;
      watch.faulted();
      life.freeze();
      world.startRelay();
      loop.in(fault.forMs, () => {
        over();
        life.goOn();
      });
      break;
    }
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
      watch.faulted();
      loop.unanswered.set(fault.call, fault.done);
      loop.in(fault.forMs, () => {
        over();
        loop.unanswered.delete(fault.call);
      });
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
