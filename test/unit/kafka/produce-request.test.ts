import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { produceHeader, readProduceAnswer } from '../../../src/kafka/produce-request.ts';
import { WireReader, WireWriter } from '../../stack/wire.ts';

const batch = { topic: 'bestellungen-ü', partition: 11, bytes: Buffer.from('a record batch'), records: 1 };

interface KafkaJsProduceResponse {
  decode: (payload: Buffer) => Promise<{ topics: unknown; throttleTime?: number; clientSideThrottleTime?: number }>;
}
const kafkaJsResponse = (version: number): KafkaJsProduceResponse =>
  createRequire(import.meta.url)(
    `kafkajs/src/protocol/requests/produce/v${version}/response`,
  ) as KafkaJsProduceResponse;

test('the header and the batch make a Produce request for one topic-partition, acks=all', () => {
  const header = produceHeader(7, 'relay-é', batch, 12_345);
  const request = new WireReader(Buffer.concat([header, batch.bytes]));
  expect(request.int32()).toBe(header.length - 4 + batch.bytes.length);
  expect([request.int16(), request.int16(), request.int32(), request.string()]).toEqual([0, 7, 0, 'relay-é']);
  expect([request.string(), request.int16(), request.int32()]).toEqual([null, -1, 12_345]);
  const topics = request.array(() => ({
    topic: request.string(),
    partitions: request.array(() => ({ partition: request.int32(), bytes: request.bytes() })),
  }));
  expect(topics).toEqual([{ topic: batch.topic, partitions: [{ partition: 11, bytes: batch.bytes }] }]);
});

interface Answered {
  topics?: readonly string[];
  partitions?: readonly number[];
  errorCode?: number;
  throttleMs?: number;
}

function answer(
  version: number,
  { topics = [batch.topic], partitions = [11], errorCode = 0, throttleMs = 0 }: Answered,
) {
  const out = new WireWriter();
  out.array(topics, (topic) =>
    out.string(topic).array(partitions, (partition) => {
      out.int32(partition).int16(errorCode).int64(77n).int64(-1n);
      if (version >= 5) out.int64(0n);
    }),
  );
  return out.int32(throttleMs).end();
}

describe.each([3, 4, 5, 6, 7])('answer v%i', (version) => {
  test('gives error code and throttle time, as kafkajs reads them', async () => {
    const payload = answer(version, { errorCode: 19, throttleMs: 250 });
    expect(readProduceAnswer(version, payload, batch)).toEqual({ errorCode: 19, throttleMs: 250 });
    const theirs = await kafkaJsResponse(version).decode(payload);
    expect(theirs.topics).toMatchObject([{ topicName: batch.topic, partitions: [{ partition: 11, errorCode: 19 }] }]);
    expect(theirs.clientSideThrottleTime ?? theirs.throttleTime).toBe(250);
  });

  test.each<[string, Answered]>([
    ['another topic', { topics: ['bestellungen-u'] }],
    ['another topic of the same length', { topics: ['bestellungen-ö'] }],
    ['another partition', { partitions: [10] }],
    ['no topic', { topics: [] }],
    ['no partition', { partitions: [] }],
    ['a second partition', { partitions: [11, 12] }],
    ['the topic twice', { topics: [batch.topic, batch.topic] }],
  ])('says nothing about the batch when it names %s', (_what, answered) => {
    expect(readProduceAnswer(version, answer(version, answered), batch)).toBeNull();
  });

  test('says nothing when it is cut short or too long, wherever', () => {
    const payload = answer(version, {});
    for (let end = 0; end < payload.length; end++) {
      expect(readProduceAnswer(version, payload.subarray(0, end), batch), `${end} bytes`).toBeNull();
    }
    expect(readProduceAnswer(version, Buffer.concat([payload, Buffer.alloc(1)]), batch)).toBeNull();
  });
});
