import { describe, expect, test } from 'vitest';
import { brokerFindings, noClusterFindings } from '../../../src/check/kafka-brokers.ts';
import { configuredTopics, topicFindings } from '../../../src/check/kafka-topics.ts';
import type { ClusterLook, TopicLook } from '../../../src/kafka/cluster-look.ts';
import { readClusterMetadata } from '../../../src/kafka/cluster-metadata.ts';
import { type Fault } from '../../../src/model/fault.ts';
import { settings, told } from './facts.ts';

const GOOD_TOPIC: TopicLook = {
  topic: 'orders',
  fault: null,
  isMissing: false,
  creation: null,
  partitions: 6,
  leaderless: 0,
  replicas: 3,
  inSync: 3,
  mayWrite: true,
  config: { maxMessageBytes: 1_048_588, minInsyncReplicas: 2 },
};
const BROKER = { address: '127.0.0.1:9092', isConfigured: true, isNamed: true, fault: null };
const UNREACHABLE: Fault = { code: 'KAFKA_UNREACHABLE', disposition: 'retry', detail: 'connection refused' };

const look = (over: Partial<ClusterLook>): ClusterLook => ({ brokers: [BROKER], producer: null, topics: [], ...over });

describe('topics', () => {
  const of = (over: Partial<TopicLook>, config: object = {}) =>
    told(topicFindings(look({ topics: [{ ...GOOD_TOPIC, ...over }] }), settings(config)));

  test.each<[string, Partial<TopicLook>, string]>([
    ['none', { isMissing: true, fault: UNREACHABLE }, 'error topic: topic orders does not exist'],
    ['no right', { mayWrite: false }, 'error topic: the user may not write topic orders'],
    ['no leader', { leaderless: 2 }, 'error topic: 2 of 6 partitions of topic orders have no leader'],
    [
      'more in-sync replicas than replicas',
      { replicas: 1, inSync: 1 },
      'error topic-replication: topic orders has 1 replica and min.insync.replicas is 2',
    ],
    [
      'too few in sync',
      { inSync: 1 },
      'error topic-replication: a partition of topic orders has 1 of 3 replicas in sync, min.insync.replicas is 2',
    ],
    [
      'one replica',
      { replicas: 1, inSync: 1, config: { maxMessageBytes: 2 ** 21, minInsyncReplicas: 1 } },
      'warning topic-replication: topic orders has one replica',
    ],
    [
      'all must be in sync',
      { replicas: 2, inSync: 2 },
      'warning topic-replication: topic orders has 2 replicas and min.insync.replicas is 2 too',
    ],
    [
      'one in sync is enough',
      { config: { maxMessageBytes: 2 ** 21, minInsyncReplicas: 1 } },
      'warning topic-replication: min.insync.replicas of topic orders is 1',
    ],
    [
      'small',
      { config: { maxMessageBytes: 1_000, minInsyncReplicas: 2 } },
      'warning topic-size: max.message.bytes of topic orders is 1000, kafka.batchBytes 1048576',
    ],
    [
      'may not ask',
      { config: null },
      'unknown topic-size: limits of topic orders could not be read: that needs DESCRIBE_CONFIGS',
    ],
  ])('%s', (_, over, expected) => {
    expect(of(over)).toEqual([expected]);
  });

  test('one that nothing is wrong with, and an old broker that tells little', () => {
    expect(of({})).toEqual([]);
    expect(of({ replicas: null, inSync: null, mayWrite: null })).toEqual([]);
  });

  test('one that will be created, and one that cannot be', () => {
    const kafka = (replicationFactor: number) => {
      return { kafka: { brokers: ['127.0.0.1:9092'], createTopics: { partitions: 3, replicationFactor } } };
    };
    expect(of({ isMissing: true }, kafka(1))).toEqual([]);
    const creation: Fault = { code: 'KAFKA_TOPIC_AUTHORIZATION_FAILED', disposition: 'park', detail: 'orders' };
    expect(of({ isMissing: true, creation }, kafka(1))).toEqual([
      'error topic: topic orders does not exist, and may not be created: orders (KAFKA_TOPIC_AUTHORIZATION_FAILED)',
    ]);
    expect(of({ isMissing: true }, kafka(3))).toEqual([
      'error topic: topic orders does not exist, and kafka.createTopics asks for 3 replicas of 1 brokers',
    ]);
  });

  test('a command of Kafka that mends it says which cluster it is for', () => {
    const faulty: Partial<TopicLook>[] = [
      ...[{ isMissing: true }, { mayWrite: false }, { leaderless: 2 }, { inSync: 1 }, { replicas: 2, inSync: 2 }],
      { config: { maxMessageBytes: 1_000, minInsyncReplicas: 2 } },
    ];
    for (const over of faulty) {
      const fixes = topicFindings(look({ topics: [{ ...GOOD_TOPIC, ...over }] }), settings()).map(
        ({ fix }) => fix ?? '',
      );
      expect(fixes.join('\n')).toMatch(/kafka-\w+\.sh --bootstrap-server [\w.]+:\d+ --/);
    }
  });

  test('those of the configuration', () => {
    const outboxes = [
      { table: 'a', topic: { fixed: 'orders' } },
      { table: 'b', topic: { column: 'topic' } },
    ];
    const named = settings({ outboxes, failures: { deadLetterTopic: 'letters' } });
    expect(configuredTopics(named)).toEqual(['orders', 'letters']);
    const letters = { ...GOOD_TOPIC, topic: 'letters', isMissing: true };
    expect(told(topicFindings(look({ topics: [letters] }), named))).toEqual([
      'error topic: dead-letter topic letters does not exist',
    ]);
  });
});

test('brokers', () => {
  const { kafka } = settings();
  expect(told(brokerFindings(look({}), kafka))).toEqual([]);
  const dead = { ...BROKER, address: 'b2:9092', fault: UNREACHABLE };
  const producer: Fault = { code: 'KAFKA_CLUSTER_AUTHORIZATION_FAILED', disposition: 'halt', detail: 'InitProducerId' };
  expect(told(brokerFindings(look({ brokers: [BROKER, dead, { ...dead, isNamed: false }], producer }), kafka))).toEqual(
    [
      'error kafka-brokers: broker b2:9092 cannot be used: connection refused (KAFKA_UNREACHABLE)',
      'warning kafka-brokers: broker b2:9092 cannot be used: connection refused (KAFKA_UNREACHABLE)',
      'error kafka-producer: the user gets no producer id: InitProducerId (KAFKA_CLUSTER_AUTHORIZATION_FAILED)',
    ],
  );
  expect(told(brokerFindings(look({}), { ...kafka, brokers: ['b1:9092'] }))).toEqual([
    'warning kafka-connection: connections to Kafka are not encrypted (kafka.tls is off, no SASL)',
  ]);
  expect(told(brokerFindings(look({}), { ...kafka, tls: { verify: false } }))).toEqual([
    'warning kafka-connection: certificates of brokers are not checked (kafka.tls.verify is false)',
  ]);
  expect(told(noClusterFindings(UNREACHABLE, kafka))).toHaveLength(1);
});

test('an answer that is cut off is no answer', () => {
  for (const bytes of [0, 3, 7, 11]) expect(() => readClusterMetadata(Buffer.alloc(bytes, 1))).toThrow(RangeError);
});
