import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { Brokers } from '../../../src/kafka/brokers.ts';
import { createDial } from '../../../src/kafka/dial.ts';
import { createEncoder, createKafkaJsLogger } from '../../../src/kafka/kafkajs-internals.ts';
import { newKafkaCounts } from '../../../src/model/server-counts.ts';
import {
  connected,
  kafkaSettings,
  makeBatch,
  newProducer,
  RecordedLog,
  told,
  TopicCorner,
} from '../../stack/publishing.ts';

const ALTER_CLIENT_QUOTAS = 49;

test('a quota of the broker: how long it wants to be left alone is counted; requests are timed by their names', async () => {
  const brokers = inject('brokers');
  await using topics = await TopicCorner.open(brokers);
  const clientId = `counted-${randomUUID()}`;
  await setProducerRate(brokers, clientId, 10_000);
  const counts = newKafkaCounts();
  const answers = new Map<string, number>();
  counts.onAnswer = (request, tookMs) => {
    expect(tookMs).toBeGreaterThan(0);
    answers.set(request, (answers.get(request) ?? 0) + 1);
  };
  await using publisher = await connected(brokers, { clientId, compression: 'none' }, new RecordedLog(), counts);
  const topic = await topics.create();
  const producer = await newProducer(publisher);
  // Over eleven windows of a second each.
  const values = [Buffer.alloc(125_000, 'x').toString()];
  expect(told(await publisher.send(await makeBatch({ topic, producer, values })))).toBe('acked');
  expect(counts.throttledMs).toBeGreaterThan(100);
  expect(counts.throttledMs).toBeLessThan(60_000);
  expect(answers.get('Produce')).toBe(1);
  expect([...answers.keys()].sort()).toEqual(['InitProducerId', 'Metadata', 'Produce'].sort());
  expect(counts.connects.get('FIRST')).toBe(counts.open);
  await publisher.close(1_000);
  expect(counts.open).toBe(0);
});

/** Kafka's tools can; kafkajs cannot. */
async function setProducerRate(brokers: readonly string[], clientId: string, bytesPerSecond: number): Promise<void> {
  const { connectTimeoutMs } = kafkaSettings(brokers);
  const logger = createKafkaJsLogger(() => undefined);
  const options = { clientId, sasl: null, dial: createDial(null), connectTimeoutMs, logger, counts: newKafkaCounts() };
  const links = new Brokers(brokers, options, new RecordedLog());
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value);
    const length = Buffer.alloc(2);
    length.writeInt16BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const one = Buffer.of(0, 0, 0, 1);
  const rate = Buffer.alloc(8);
  rate.writeDoubleBE(bytesPerSecond);
  const no = Buffer.of(0);
  const body = Buffer.concat([
    ...[one, one, text('client-id'), text(clientId)],
    ...[one, text('producer_byte_rate'), rate, no, no],
  ]);
  const request = {
    apiKey: ALTER_CLIENT_QUOTAS,
    apiVersion: 0,
    apiName: 'AlterClientQuotas',
    encode: () => Promise.resolve(createEncoder().writeBuffer(body)),
  };
  const response = {
    // throttle time, entries, and of the one its error code
    decode: (payload: Buffer) => Promise.resolve(payload.readInt16BE(8)),
    parse: (decoded: unknown) => Promise.resolve(decoded),
  };
  expect(await links.any((link) => link.exchange(() => ({ request, response }), connectTimeoutMs))).toBe(0);
  links.close({ code: 'STOPPED', disposition: 'halt', detail: 'set' });
}
