/** What a relay may not do on a Kafka that asks: topics of their own rights, for the one user there is. */
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KafkaSettings } from '../../../src/model/settings.ts';
import { KAFKA_USER, type KafkaCluster } from '../../stack/handles.ts';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { createTopics } from '../../stack/patient-admin.ts';
import { connected, makeBatch, newProducer, RecordedLog, told } from '../../stack/publishing.ts';
import { startKafka } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';

const MAY_WRITE = 'may-write';
const MAY_ASK_TOO = 'may-ask-too';
const FORBIDDEN = 'forbidden';
const WIDE = 'wide';
const LIMIT = { name: 'max.message.bytes', value: '3000' };

let cluster: KafkaCluster;
const sasl: Partial<KafkaSettings> = { sasl: { mechanism: 'plain', ...KAFKA_USER } };

beforeAll(async () => {
  cluster = await startKafka({
    listeners: { saslplain: { sasl: 'plain' } },
    properties: {
      'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      // Brokers and tests: the listeners without SASL.
      'super.users': 'User:ANONYMOUS',
      'socket.request.max.bytes': String(2 << 20),
    },
  });
  const admin = kafkaClient(cluster.brokers).admin();
  await admin.connect();
  await createTopics(admin, [
    ...[MAY_WRITE, MAY_ASK_TOO, FORBIDDEN].map((topic) => ({ topic, configEntries: [LIMIT] })),
    { topic: WIDE, numPartitions: 2, configEntries: [{ name: LIMIT.name, value: String(10 << 20) }] },
  ]);
  const allowed = (topic: string, operation: AclOperationTypes) => ({
    resourceType: AclResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: ResourcePatternTypes.LITERAL,
    principal: `User:${KAFKA_USER.username}`,
    host: '*',
    operation,
    permissionType: AclPermissionTypes.ALLOW,
  });
  await admin.createAcls({
    acl: [
      allowed(MAY_WRITE, AclOperationTypes.WRITE),
      allowed(WIDE, AclOperationTypes.WRITE),
      allowed(MAY_ASK_TOO, AclOperationTypes.WRITE),
      allowed(MAY_ASK_TOO, AclOperationTypes.DESCRIBE_CONFIGS),
    ],
  });
  await admin.disconnect();
  // The broker hears of rights a little later than of topics.
  await using publisher = await connected(cluster.listener('saslplain'), sasl);
  const limits = async () => {
    const states = await Promise.all([MAY_WRITE, MAY_ASK_TOO].map((topic) => publisher.topic(topic, true)));
    return states.map((state) => (state.as === 'known' ? state.maxBatchBytes : state.fault.code));
  };
  await until(async () => JSON.stringify(await limits()) === '[null,3000]', { withinMs: 20_000, what: 'the rights' });
}, 120_000);
afterAll(() => cluster.dispose());

test('who may write and not ask for the limits writes, and the broker refuses what is too large', async () => {
  const log = new RecordedLog();
  await using publisher = await connected(cluster.listener('saslplain'), sasl, log);
  const known = { as: 'known', partitions: 1 };
  expect(await publisher.topic(MAY_WRITE)).toEqual({ ...known, maxBatchBytes: null });
  expect(await publisher.topic(MAY_ASK_TOO)).toEqual({ ...known, maxBatchBytes: 3000 });
  const refusals: string[] = [];
  for (const topic of [MAY_WRITE, MAY_ASK_TOO]) {
    const producer = await newProducer(publisher);
    expect(told(await publisher.send(await makeBatch({ topic, producer, values: ['x'] })))).toBe('acked');
    const large = await makeBatch({ topic, producer, sequence: 1, values: ['x'.repeat(4000)] });
    const outcome = await publisher.send(large);
    expect(told(outcome)).toBe('refused KAFKA_MESSAGE_TOO_LARGE reject');
    if (outcome.as !== 'acked') refusals.push(outcome.fault.detail);
  }
  expect(refusals).toEqual([
    `${MAY_WRITE}-0 (broker error 10)`,
    expect.stringMatching(/^may-ask-too-0: a batch of \d+ bytes, the topic takes 3000$/),
  ]);
  const lines = log.lines.filter(({ event }) => event === 'kafka-limits-unknown');
  expect(lines).toMatchObject([
    { level: 'debug', fields: { of: MAY_WRITE, code: 'KAFKA_TOPIC_AUTHORIZATION_FAILED' } },
  ]);
});

test('F2: a topic that may not be written is parked alone', async () => {
  await using publisher = await connected(cluster.listener('saslplain'), sasl);
  const producer = await newProducer(publisher);
  const fault = { code: 'KAFKA_TOPIC_AUTHORIZATION_FAILED', disposition: 'park' };
  expect(await publisher.topic(FORBIDDEN)).toMatchObject({ as: 'unusable', fault });
  const batches = await Promise.all(
    [FORBIDDEN, MAY_WRITE].map((topic) => makeBatch({ topic, producer, values: ['x'] })),
  );
  expect((await Promise.all(batches.map((batch) => publisher.send(batch)))).map(told)).toEqual([
    'refused KAFKA_TOPIC_AUTHORIZATION_FAILED park',
    'acked',
  ]);
});

describe('F1: a request that the broker does not read, though the topic would take it', () => {
  test('is not sent where the broker says so', async () => {
    await using publisher = await connected(cluster.brokers);
    const producer = await newProducer(publisher);
    const large = await makeBatch({ topic: WIDE, producer, values: ['x'.repeat(3 << 20)] });
    expect(told(await publisher.send(large))).toBe('refused KAFKA_REQUEST_TOO_LARGE reject');
    expect(told(await publisher.send(await makeBatch({ topic: WIDE, producer, values: ['x'] })))).toBe('acked');
  });

  test('is found out in three tries where it does not say, and no other lane is cut for it twice', async () => {
    await using publisher = await connected(cluster.listener('saslplain'), sasl);
    const producer = await newProducer(publisher);
    const large = await makeBatch({ topic: WIDE, producer, values: ['x'.repeat(3 << 20)] });
    const small = (sequence: number) => makeBatch({ topic: WIDE, partition: 1, producer, sequence, values: ['x'] });
    expect(told(await publisher.send(large))).toBe('uncertain KAFKA_UNREACHABLE retry');
    expect(told(await publisher.send(await small(0)))).toBe('acked');
    const both = await Promise.all([publisher.send(large), publisher.send(await small(1))]);
    expect(both.map(told)).toEqual(['uncertain KAFKA_UNREACHABLE retry', 'acked']);
    expect(told(await publisher.send(large))).toBe('refused KAFKA_REQUEST_TOO_LARGE reject');
  });
});
