import { setTimeout as sleep } from 'node:timers/promises';
import { stopSoftly } from '../stack/one-outbox.ts';
import { topicOffsets } from '../stack/patient-admin.ts';
import { type Delivery, PlainConsumer } from '../stack/plain-consumer.ts';
import type { CliProcess } from '../stack/relay-process.ts';
import { until } from '../stack/until.ts';
import { type Audit, auditOf } from './audit.ts';
import { committedRows } from './committed-rows.ts';
import { type FaultSpan, type FaultStage, killRelay, stopKafka } from './faults.ts';
import { Ledger } from './ledger.ts';
import { ORDERS_TOPIC, PAYMENTS_TOPIC } from './order-events.ts';
import { OrderService } from './order-service.ts';
import type { Screen } from './screen.ts';
import { buildStage, DATABASE, type Stage } from './stage.ts';
import { type Parts, watch } from './watch.ts';

const RATE_PER_S = 400;
/** When the faults happen, as parts of the time that the order service works. */
const FIRST_KILL = 0.12;
const SECOND_KILL = 0.3;
const KAFKA_STOP = 0.48;
/** Between the end of one fault and the next. */
const CALM_MS = 1000;
/** Five seconds, or less in a short demo. */
const KAFKA_DOWN_MS = 5000;
const KAFKA_DOWN = 0.2;
const LAST_ARRIVALS_MS = 30_000;

export interface Outcome {
  readonly audit: Audit;
  readonly ledger: Ledger;
  readonly spans: readonly FaultSpan[];
  /** How the relay ended, when not as it was told to. */
  readonly relayFailure: string | null;
}

/** The whole demo: an order service works for `workMs` while faults happen; then everything is compared. */
export async function runShow(screen: Screen, owned: AsyncDisposableStack, workMs: number): Promise<Outcome> {
  const stage = await buildStage(screen, owned);
  const { host, port, user, password } = stage.mysql;
  const ledger = new Ledger();
  const deliveries: Delivery[] = [];
  const service = new OrderService({ host, port, user, password, database: DATABASE }, ledger, RATE_PER_S);
  const consumer = new PlainConsumer(stage.client, [ORDERS_TOPIC, PAYMENTS_TOPIC], (delivery) => {
    deliveries.push(delivery);
    ledger.received(String(delivery.headers['id']), delivery.receivedMs);
  });
  const relay = await screen.step(
    'starting the relay, a consumer and the order service',
    async () => {
      const first = await stage.startRelay();
      await Promise.all([first.waitFor('binlog-streaming'), consumer.start(), service.open()]);
      return first;
    },
    () => 'relay, consumer and order service started',
  );
  owned.defer(() => consumer.stop());

  screen.open();
  const startedMs = performance.now();
  const parts: Parts = { relay: 'up', kafka: 'up' };
  const faultStage: FaultStage = {
    ...{ ledger, parts },
    tell: (text, tone) => screen.event(performance.now() - startedMs, text, tone),
  };
  const live = watch(screen, ledger, parts, startedMs, workMs);
  const [faults] = await Promise.all([runFaults(stage, faultStage, relay, workMs), service.work(workMs)]);
  await until(() => ledger.waiting === 0, { withinMs: LAST_ARRIVALS_MS, what: 'all events' }).catch(() => undefined);
  const relayFailure = await stopSoftly(faults.relay).then(() => null, String);
  await readToTheEnd(stage, consumer);
  live.end();
  await service.close();
  const rows = await committedRows(stage.connection);
  return { audit: auditOf(rows, ledger, deliveries), ledger, spans: faults.spans, relayFailure };
}

interface Faults {
  /** The relay that runs at the end. */
  readonly relay: CliProcess;
  readonly spans: readonly FaultSpan[];
}

async function runFaults(stage: Stage, on: FaultStage, first: CliProcess, workMs: number): Promise<Faults> {
  const startedMs = performance.now();
  const at = (part: number): Promise<void> => sleep(Math.max(CALM_MS, startedMs + part * workMs - performance.now()));
  const restart = (): Promise<CliProcess> => stage.startRelay();
  await at(FIRST_KILL);
  const once = await killRelay(on, 'the first kill', first, restart);
  await at(SECOND_KILL);
  const twice = await killRelay(on, 'the second kill', once.relay, restart);
  await at(KAFKA_STOP);
  const [broker] = stage.kafka.nodes;
  const stopped = await stopKafka(on, broker, Math.min(KAFKA_DOWN_MS, KAFKA_DOWN * workMs));
  return { relay: twice.relay, spans: [once.span, twice.span, stopped] };
}

/** The relay has ended: what is in the topics now is all there will be. */
async function readToTheEnd(stage: Stage, consumer: PlainConsumer): Promise<void> {
  const admin = stage.client.admin();
  await admin.connect();
  for (const topic of [ORDERS_TOPIC, PAYMENTS_TOPIC]) {
    const ends = await topicOffsets(admin, topic);
    await until(() => ends.every(({ partition, high }) => consumer.nextOffset(topic, partition) >= BigInt(high)), {
      withinMs: LAST_ARRIVALS_MS,
      what: `the end of ${topic} is read`,
    });
  }
  await admin.disconnect();
}
