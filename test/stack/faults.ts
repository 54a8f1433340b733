import { setTimeout as sleep } from 'node:timers/promises';
import type { KeptRelay, ProxiedServers } from './fault-stage.ts';
import type { Controls } from './handles.ts';
import type { Proxy } from './proxy.ts';

export interface Stage {
  readonly servers: ProxiedServers;
  readonly relay: KeptRelay;
  readonly random: () => number;
}

/** One kind of fault. `cause` ends when everything is whole again, as far as that is in anybody's hands. */
export interface FaultKind {
  readonly name: string;
  readonly weight: number;
  readonly cause: (stage: Stage) => Promise<void>;
}

const FREEZE_MS = 5_000;
const DOWN_MS = 1_500;

const restarted = async (server: Controls, end: 'kill' | 'stop', random: () => number): Promise<void> => {
  await server[end]();
  await sleep(random() * DOWN_MS);
  await server.start();
};

const frozen = async (what: { freeze(): unknown; thaw(): unknown }, random: () => number): Promise<void> => {
  await what.freeze();
  await sleep(random() * FREEZE_MS);
  await what.thaw();
};

const broker = ({ servers, random }: Stage): Controls => oneOf(servers.kafka.nodes, random);

/** Faults of processes: the relay, and a broker. */
export const RELAY_AND_BROKER: readonly FaultKind[] = [
  {
    name: 'relay killed',
    weight: 4,
    cause: async ({ relay, random }) => {
      await relay.kill();
      await sleep(random() * DOWN_MS);
      await relay.start();
    },
  },
  {
    name: 'relay stopped',
    weight: 1,
    cause: async ({ relay }) => {
      await relay.stop();
      await relay.start();
    },
  },
  {
    name: 'relay frozen',
    weight: 1,
    cause: ({ relay, random }) => {
      const { process } = relay;
      return frozen({ freeze: () => process.signal('SIGSTOP'), thaw: () => process.signal('SIGCONT') }, random);
    },
  },
  { name: 'broker killed', weight: 1, cause: (stage) => restarted(broker(stage), 'kill', stage.random) },
  { name: 'broker stopped', weight: 1, cause: (stage) => restarted(broker(stage), 'stop', stage.random) },
  { name: 'broker frozen', weight: 2, cause: (stage) => frozen(broker(stage), stage.random) },
];

const JUMP_MS = 24 * 3_600_000;

/** The relay's wall clock is set, forward or back; it stays wrong until the next jump. */
export const CLOCK: readonly FaultKind[] = [
  {
    name: 'clock jumps',
    weight: 2,
    cause: async ({ relay, random }) => {
      relay.clock?.set(Math.round((random() * 2 - 1) * JUMP_MS));
      await sleep(random() * DOWN_MS);
    },
  },
];

/** Faults of MySQL's process. */
export const DATABASE: readonly FaultKind[] = [
  { name: 'MySQL killed', weight: 1, cause: ({ servers, random }) => restarted(servers.mysql, 'kill', random) },
  { name: 'MySQL stopped', weight: 0.5, cause: ({ servers, random }) => restarted(servers.mysql, 'stop', random) },
  { name: 'MySQL frozen', weight: 1, cause: ({ servers, random }) => frozen(servers.mysql, random) },
];

/** Faults of the network, in front of MySQL and of a broker alike. */
export const NETWORK: readonly FaultKind[] = (['MySQL', 'Kafka'] as const).flatMap((name) => {
  const proxy = ({ servers, random }: Stage): Proxy =>
    name === 'MySQL' ? servers.mysqlProxy : oneOf(servers.kafkaProxies, random);
  const kind = (what: string, weight: number, cause: (proxy: Proxy, random: () => number) => Promise<void>) => ({
    name: `${name} connections ${what}`,
    weight,
    cause: (stage: Stage) => cause(proxy(stage), stage.random),
  });
  return [
    kind('cut', 2, (each) => {
      each.cut();
      return Promise.resolve();
    }),
    kind('frozen', 2, (each, random) => frozen(each, random)),
    kind('frozen one way', 1, (each, random) =>
      frozen({ freeze: () => each.freeze(random() < 0.5 ? 'up' : 'down'), thaw: () => each.thaw() }, random),
    ),
    kind('cut within a message', 2, async (each, random) => {
      each.cutAfter(1 + Math.floor(random() * 20_000), random() < 0.5 ? 'up' : 'down');
      await sleep(random() * DOWN_MS);
    }),
    kind('slow', 1, async (each, random) => {
      each.delayMs = 20 + random() * 200;
      await sleep(random() * FREEZE_MS);
      each.delayMs = 0;
    }),
    kind('narrow', 1, async (each, random) => {
      each.bytesPerSecond = 20_000 + random() * 200_000;
      await sleep(random() * FREEZE_MS);
      each.bytesPerSecond = Infinity;
    }),
  ];
});

export interface FaultFigures {
  /** Of each kind. */
  readonly counts: Record<string, number>;
  /** From the end of a fault until everything that had been committed by then was settled. */
  readonly longestRecovery: { ms: number; name: string };
}

/**
 * Causes one fault after the other until the time is over. Where `recovered` says how to wait for what a fault has held
 * up, about every second one is waited for; the others meet a relay that has not recovered yet.
 */
export async function causeFaults(
  stage: Stage,
  kinds: readonly FaultKind[],
  options: {
    readonly untilMs: number;
    readonly mostPauseMs: number;
    readonly tell?: (text: string) => void;
    readonly recovered?: () => Promise<unknown>;
  },
): Promise<FaultFigures> {
  const { random } = stage;
  const { untilMs, mostPauseMs, tell, recovered } = options;
  const counts: Record<string, number> = {};
  const longestRecovery = { ms: 0, name: '' };
  const weights = kinds.reduce((sum, { weight }) => sum + weight, 0);
  while (performance.now() < untilMs) {
    await sleep(random() * mostPauseMs);
    let at = random() * weights;
    const { name, cause } = kinds.find(({ weight }) => (at -= weight) < 0) ?? kinds[0];
    tell?.(name);
    await cause(stage);
    counts[name] = (counts[name] ?? 0) + 1;
    if (recovered === undefined || random() < 0.5) continue;
    const endedMs = performance.now();
    await recovered();
    const ms = Math.round(performance.now() - endedMs);
    if (ms > longestRecovery.ms) Object.assign(longestRecovery, { ms, name });
    tell?.(`recovered from ${name} after ${ms} ms`);
  }
  return { counts, longestRecovery };
}

function oneOf<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)];
}
