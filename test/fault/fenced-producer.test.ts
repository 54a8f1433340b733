import { expect, test } from 'vitest';
import { FakeBroker, type ReceivedBatch } from '../stack/fake-broker.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { until } from '../stack/until.ts';

/** Where a record batch (magic 2) has its producer's id, epoch, first sequence number, record count and records. */
const PRODUCER_AT = 43;
const EPOCH_AT = 51;
const SEQUENCE_AT = 53;
const RECORDS_AT = 61;

// A real broker gives these codes only after it has lost state: a fake one speaks for it.
test.for([
  { code: 45, name: 'KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER' },
  { code: 59, name: 'KAFKA_UNKNOWN_PRODUCER_ID' },
  { code: 47, name: 'KAFKA_INVALID_PRODUCER_EPOCH' },
])('F7 the broker answers $code once: a new producer id, and the rows again, in order', async ({ code, name }) => {
  await using bed = await RelayBed.open();
  await using broker = await FakeBroker.start();
  const topic = bed.servers.topic('orders');
  broker.topics.set(topic, { leaders: [1] });
  const relay = await bed.start({ kafka: { brokers: [broker.address] } });

  await insertRows(bed.servers.pool, { topic, count: 5, perTransaction: 1 });
  await bed.retired();
  const before = broker.appended.length;
  broker.script('Produce', { errorCode: code });
  await insertRows(bed.servers.pool, { topic, count: 50, perTransaction: 5, prefix: 'later' });
  await bed.retired();
  await until(() => relay.lines().some(({ event }) => event === 'lane-flowing'), { withinMs: 20_000, what: 'flowing' });

  expect(await relay.waitFor('lane-held')).toMatchObject({ code: name });
  expect(relay.lines().filter(({ event }) => event === 'producer-renewed')).toHaveLength(1);
  expect(broker.asked.filter((api) => api === 'InitProducerId')).toHaveLength(2);
  expect(rowsOf(broker.appended)).toEqual([...numbers(5), ...numbers(50)]);

  const refused = broker.received[before];
  const again = broker.received[before + 1];
  expect(broker.appended).not.toContain(refused);
  expect(again.bytes.subarray(RECORDS_AT).equals(refused.bytes.subarray(RECORDS_AT))).toBe(true);
  expect(producerOf(again)).not.toEqual(producerOf(refused));
  // Under the new identity the numbers begin at zero, and go on without a gap.
  let next = 0;
  for (const batch of broker.appended.slice(before)) {
    expect(producerOf(batch)).toEqual(producerOf(again));
    expect(batch.bytes.readInt32BE(SEQUENCE_AT)).toBe(next);
    next += batch.bytes.readInt32BE(RECORDS_AT - 4);
  }
  expect(relay.alive()).toBe(true);
});

function producerOf({ bytes }: ReceivedBatch): string {
  return `${bytes.readBigInt64BE(PRODUCER_AT)}/${bytes.readInt16BE(EPOCH_AT)}`;
}

/** The numbers that the rows carry in their payloads, in the order of the batches. */
function rowsOf(batches: readonly ReceivedBatch[]): number[] {
  return batches.flatMap(({ bytes }) =>
    [...bytes.toString('latin1').matchAll(/"n": (\d+)/g)].map(([, number]) => Number(number)),
  );
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
