import { setTimeout as sleep } from 'node:timers/promises';
import type { Broker } from '../stack/handles.ts';
import type { CliProcess } from '../stack/relay-process.ts';
import { until } from '../stack/until.ts';
import { counted, duration } from './format.ts';
import type { Ledger } from './ledger.ts';
import type { Tone } from './screen.ts';
import type { Parts } from './watch.ts';

/** The relay is down for as long as a supervisor takes. */
const RESTART_AFTER_MS = 1000;
/** A fault is over when nothing has waited longer than this. */
const CAUGHT_UP_MS = 100;
const CAUGHT_UP_WITHIN_MS = 45_000;

/** From the fault until everything that it held up had arrived. */
export interface FaultSpan {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface FaultStage {
  readonly ledger: Ledger;
  readonly parts: Parts;
  readonly tell: (text: string, tone: Tone) => void;
}

/** SIGKILL: no goodbye, nothing saved. Returns the relay that was started in its place. */
export async function killRelay(
  stage: FaultStage,
  name: string,
  relay: CliProcess,
  restart: () => Promise<CliProcess>,
): Promise<{ relay: CliProcess; span: FaultSpan }> {
  const { parts, tell } = stage;
  const fromMs = performance.now();
  parts.relay = 'down';
  await relay.kill();
  tell('killed the relay (SIGKILL)', 'bad');
  await sleep(RESTART_AFTER_MS);
  parts.relay = 'starting';
  const startedMs = performance.now();
  const next = await restart();
  await next.waitFor('binlog-streaming');
  parts.relay = 'up';
  const { waiting } = stage.ledger;
  const toMs = await caughtUp(stage.ledger);
  const took = duration(toMs - startedMs);
  tell(`started it again: ${counted(waiting, 'event')} had waited, all of them through after ${took}`, 'good');
  return { relay: next, span: { name, fromMs, toMs } };
}

/** Kafka goes away and comes back; nobody touches the relay. */
export async function stopKafka(stage: FaultStage, broker: Broker, downMs: number): Promise<FaultSpan> {
  const { parts, tell } = stage;
  const fromMs = performance.now();
  parts.kafka = 'down';
  await broker.stop();
  tell(`stopped Kafka`, 'bad');
  await sleep(downMs);
  parts.kafka = 'starting';
  await broker.start();
  parts.kafka = 'up';
  const servedMs = performance.now();
  const { waiting } = stage.ledger;
  tell(`Kafka serves again after ${duration(servedMs - fromMs)}; ${counted(waiting, 'event')} wait in MySQL`, 'plain');
  const toMs = await caughtUp(stage.ledger);
  tell(`all of them through after ${duration(toMs - servedMs)}; nobody touched the relay`, 'good');
  return { name: 'the stop of Kafka', fromMs, toMs };
}

async function caughtUp(ledger: Ledger): Promise<number> {
  return until(
    () => {
      const nowMs = performance.now();
      return ledger.oldestWaitMs(nowMs) < CAUGHT_UP_MS && nowMs;
    },
    { withinMs: CAUGHT_UP_WITHIN_MS, what: 'everything that waited has arrived', everyMs: 10 },
  );
}
