import { ConfigResourceTypes } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { connected, makeBatch, newProducer, told, TopicCorner, type BatchRecipe } from '../../stack/publishing.ts';
import { readRecords } from '../../stack/read-records.ts';
import { topicNames } from '../../stack/patient-admin.ts';
import { eventually, until } from '../../stack/until.ts';

const brokers = inject('brokers');
/** `message.max.bytes` of a broker that is not told otherwise. */
const DEFAULT_LIMIT = 1_048_588;
let topics: TopicCorner;

beforeAll(async () => {
  topics = await TopicCorner.open(brokers);
});
afterAll(() => topics[Symbol.asyncDispose]());

test.each(['none', 'gzip', 'zstd'] as const)(
  'compression %s: what is sent is what a consumer reads',
  async (compression) => {
    await using publisher = await connected(brokers);
    const topic = await topics.create();
    const producer = await newProducer(publisher);
    const values = Array.from({ length: 500 }, (_, i) => `${compression} ${i} äöü`);
    for (let sequence = 0; sequence < values.length; sequence += 100) {
      const batch = await makeBatch({
        topic,
        producer,
        sequence,
        values: values.slice(sequence, sequence + 100),
        compression,
      });
      expect(told(await publisher.send(batch))).toBe('acked');
    }
    const read = await readRecords(kafkaClient(brokers), [topic]);
    expect(read.map(({ key, value, headers }) => [String(key), String(value), String(headers['id'])])).toEqual(
      values.map((value, i) => [value, value, `${producer.id}-${i}`]),
    );
  },
);

test('identical bytes again are not appended twice', async () => {
  await using publisher = await connected(brokers);
  const topic = await topics.create();
  const producer = await newProducer(publisher);
  const batch = await makeBatch({ topic, producer, values: ['a', 'b'] });
  for (let i = 0; i < 3; i++) expect((await publisher.send(batch)).as).toBe('acked');
  expect(await topics.counts(topic)).toEqual([2]);
});

test('F7: a gap in the sequence asks for a new producer, and that one goes on', async () => {
  await using publisher = await connected(brokers);
  const topic = await topics.create();
  const recipe: BatchRecipe = { topic, producer: await newProducer(publisher), values: ['a'] };
  expect(told(await publisher.send(await makeBatch(recipe)))).toBe('acked');
  expect(told(await publisher.send(await makeBatch({ ...recipe, sequence: 7 })))).toBe(
    'refused KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER renew',
  );
  const producer = await newProducer(publisher);
  expect(producer).not.toEqual(recipe.producer);
  expect(told(await publisher.send(await makeBatch({ ...recipe, producer })))).toBe('acked');
  expect(await topics.counts(topic)).toEqual([2]);
});

describe('size', () => {
  test('over the topic’s limit: rejected, nothing appended, the sequence number is still free', async () => {
    await using publisher = await connected(brokers);
    const topic = await topics.create(1, { 'max.message.bytes': '1000' });
    const producer = await newProducer(publisher);
    expect(told(await publisher.send(await makeBatch({ topic, producer, values: ['x'.repeat(2000)] })))).toBe(
      'refused KAFKA_MESSAGE_TOO_LARGE reject',
    );
    expect(told(await publisher.send(await makeBatch({ topic, producer, values: ['x'] })))).toBe('acked');
    expect(await topics.counts(topic)).toEqual([1]);
  });
});

describe('F1: the limit of a topic that is known', () => {
  test('is respected before anything is sent, and asked for again', async () => {
    await using publisher = await connected(brokers);
    const topic = await topics.create(1, { 'max.message.bytes': '1000' });
    const limit = async (refresh: boolean) => {
      const state = await publisher.topic(topic, refresh);
      return state.as === 'known' ? state.maxBatchBytes : state.fault;
    };
    await until(async () => (await limit(false)) === 1000, { withinMs: 20_000, what: 'the limit' });
    const producer = await newProducer(publisher);
    const over = await makeBatch({ topic, producer, values: ['x'.repeat(2000)] });
    const refusal = await publisher.send(over);
    expect(refusal).toMatchObject({
      as: 'refused',
      fault: { detail: `${topic}-0: a batch of ${over.bytes.length} bytes, the topic takes 1000` },
    });
    const configEntries = [{ name: 'max.message.bytes', value: String(over.bytes.length) }];
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }];
    await topics.admin.alterConfigs({ resources, validateOnly: false });
    await until(async () => (await limit(true)) === over.bytes.length, { withinMs: 20_000, what: 'the new limit' });
    // To the byte.
    expect(told(await publisher.send(over))).toBe('acked');
    const byte = await makeBatch({ topic, producer, sequence: 1, values: ['x'.repeat(2001)] });
    expect(told(await publisher.send(byte))).toBe('refused KAFKA_MESSAGE_TOO_LARGE reject');
  });

  test('is its broker’s where it has none of its own', async () => {
    await using publisher = await connected(brokers);
    const topic = await topics.create(1);
    const state = { as: 'known', partitions: 1, maxBatchBytes: DEFAULT_LIMIT };
    await eventually(async () => expect(await publisher.topic(topic)).toEqual(state), {
      withinMs: 20_000,
      what: 'the limit of the broker',
    });
  });
});

describe('topics', () => {
  test('an unknown one is not created, and disturbs no other', async () => {
    await using publisher = await connected(brokers);
    const topic = await topics.create(3);
    const unknown = topics.unused();
    const producer = await newProducer(publisher);
    const states = await Promise.all([publisher.topic(unknown), publisher.topic(topic)]);
    expect(states).toMatchObject([
      { as: 'unusable', fault: { code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION', disposition: 'park' } },
      { as: 'known', partitions: 3 },
    ]);
    const outcomes = await Promise.all([
      publisher.send(await makeBatch({ topic: unknown, producer, values: ['a'] })),
      publisher.send(await makeBatch({ topic, producer, values: ['a'] })),
    ]);
    expect(outcomes.map(told)).toEqual(['refused KAFKA_UNKNOWN_TOPIC_OR_PARTITION park', 'acked']);
    expect(await topicNames(topics.admin)).not.toContain(unknown);
  });

  test('a name that no topic can have', async () => {
    await using publisher = await connected(brokers);
    for (const name of ['no spaces', 'x'.repeat(250), '', '..']) {
      expect(await publisher.topic(name)).toMatchObject({
        as: 'unusable',
        fault: { code: 'KAFKA_INVALID_TOPIC_EXCEPTION', disposition: 'park' },
      });
    }
  });

  test('one is created where that is configured, once for all who ask', async () => {
    await using publisher = await connected(brokers, { createTopics: { partitions: 4, replicationFactor: 1 } });
    const topic = topics.unused();
    const states = await Promise.all([publisher.topic(topic), publisher.topic(topic), publisher.topic(topic)]);
    expect(states).toEqual(Array(3).fill({ as: 'known', partitions: 4, maxBatchBytes: DEFAULT_LIMIT }));
    const producer = await newProducer(publisher);
    expect(told(await publisher.send(await makeBatch({ topic, partition: 3, producer, values: ['a'] })))).toBe('acked');
  });

  test('one that cannot be created as configured is parked', async () => {
    await using publisher = await connected(brokers, { createTopics: { partitions: 1, replicationFactor: 99 } });
    expect(await publisher.topic(topics.unused())).toMatchObject({
      as: 'unusable',
      fault: { code: 'KAFKA_INVALID_REPLICATION_FACTOR', disposition: 'park' },
    });
  });

  test('a used one that is deleted is parked after a while; the others go on; made again, it is used again', async () => {
    await using publisher = await connected(brokers);
    const [gone, other] = [await topics.create(), await topics.create()];
    const producer = await newProducer(publisher);
    const batch = await makeBatch({ topic: gone, producer, values: ['a'] });
    expect(told(await publisher.send(batch))).toBe('acked');
    await topics.admin.deleteTopics({ topics: [gone] });
    let sequence = 0;
    const seen = new Set<string>();
    await until(
      async () => {
        seen.add(told(await publisher.send(batch)));
        const next = await makeBatch({ topic: other, producer, sequence: sequence++, values: ['a'] });
        expect(told(await publisher.send(next))).toBe('acked');
        return seen.has('refused KAFKA_UNKNOWN_TOPIC_OR_PARTITION park');
      },
      { withinMs: 30_000, what: 'the deleted topic is parked', everyMs: 100 },
    );
    expect(seen).toContain('refused KAFKA_UNKNOWN_TOPIC_OR_PARTITION retry');
    await topics.admin.createTopics({ topics: [{ topic: gone, numPartitions: 2 }] });
    await until(async () => (await publisher.topic(gone, true)).as === 'known', {
      withinMs: 20_000,
      what: 'it is known',
    });
    const anew = await makeBatch({ topic: gone, partition: 1, producer: await newProducer(publisher), values: ['a'] });
    await until(async () => (await publisher.send(anew)).as === 'acked', {
      withinMs: 20_000,
      what: 'it is used again',
    });
    expect(await topics.counts(gone)).toEqual([0, 1]);
  });

  test('F2: one that is deleted is missed at first, then given up', async () => {
    await using publisher = await connected(brokers);
    const topic = await topics.create();
    await publisher.topic(topic);
    await topics.admin.deleteTopics({ topics: [topic] });
    const seen: string[] = [];
    await until(
      async () => {
        const state = await publisher.topic(topic, true);
        seen.push(state.as === 'known' ? 'known' : state.fault.disposition);
        return seen.at(-1) === 'park';
      },
      { withinMs: 30_000, what: 'it is given up', everyMs: 100 },
    );
    expect(seen).toContain('retry');
    expect(seen.lastIndexOf('known')).toBeLessThan(seen.indexOf('retry'));
  });

  test('partitions that are added are seen on refresh', async () => {
    await using publisher = await connected(brokers);
    const topic = await topics.create(1);
    expect(await publisher.topic(topic)).toMatchObject({ as: 'known', partitions: 1 });
    await topics.admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
    expect(await publisher.topic(topic)).toMatchObject({ as: 'known', partitions: 1 });
    await until(async () => JSON.stringify(await publisher.topic(topic, true)).includes('"partitions":3'), {
      withinMs: 20_000,
      what: 'three partitions',
    });
  });
});

test('an idle connection does not wake the process (kafkajs issues 1751, 1755, 1768)', async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warned);
  await using publisher = await connected(brokers);
  const topic = await topics.create();
  const producer = await newProducer(publisher);
  for (let sequence = 0; sequence < 3; sequence++) {
    await publisher.send(await makeBatch({ topic, producer, sequence, values: ['a'] }));
  }
  const turns = (): number => performance.nodeTiming.uvMetricsInfo.loopCount;
  // The runner wakes this process too, now and then; the library's loop would in every second (some 800 times).
  let fewest = Infinity;
  for (let second = 0; second < 3; second++) {
    const before = turns();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    fewest = Math.min(fewest, turns() - before);
  }
  expect(fewest).toBeLessThan(200);
  process.off('warning', warned);
  expect(warnings).toEqual([]);
});
