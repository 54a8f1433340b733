import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { lookAtCluster } from '../../../src/kafka/cluster-look.ts';
import { KAFKA_USER, type KafkaCluster } from '../../stack/handles.ts';
import { makeAuthority } from '../../stack/certificates.ts';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { createTopics } from '../../stack/patient-admin.ts';
import { startKafka } from '../../stack/stack.ts';
import { testBed } from '../../stack/test-bed.ts';
import { until } from '../../stack/until.ts';
import { CheckBed, SILENT, told } from './check-bed.ts';

const KAFKA_CHECKS = [
  ...['kafka-connection', 'kafka-brokers', 'kafka-producer'],
  ...['topic', 'topic-replication', 'topic-size'],
];

test('topics that are wrong, each in its way, and a broker that is not there', async () => {
  await using topics = await testBed();
  await using bed = await CheckBed.open({ mysql: inject('mysql'), brokers: inject('brokers') });
  await topics.createTopics({ small: 1 }, { 'max.message.bytes': '3000' });
  await topics.createTopics({ wanting: 2 }, { 'min.insync.replicas': '2' });
  const [small, wanting, gone, letters] = ['small', 'wanting', 'gone', 'letters'].map(topics.topic);
  for (const topic of [small, wanting, gone]) {
    await bed.sql("INSERT INTO outbox (topic, aggregate_id) VALUES (?, '1')", [topic]);
  }
  const report = await bed.check({
    kafka: { brokers: ['127.0.0.1:1', ...inject('brokers')] },
    failures: { deadLetterTopic: letters },
  });
  const by = (a: string, b: string) => (a < b ? -1 : 1);
  expect(told(report, KAFKA_CHECKS).sort(by)).toEqual([
    `error topic-replication: topic ${wanting} has 1 replica and min.insync.replicas is 2`,
    `error topic: dead-letter topic ${letters} does not exist`,
    `error topic: topic ${gone} does not exist`,
    'warning kafka-brokers: broker 127.0.0.1:1 cannot be used: 127.0.0.1:1: connection refused (ECONNREFUSED) (KAFKA_UNREACHABLE)',
    `warning topic-replication: topic ${small} has one replica`,
    `warning topic-size: max.message.bytes of topic ${small} is 3000, kafka.batchBytes 1048576`,
  ]);
});

test('a broker that is down: partitions without a leader, and with too few replicas in sync', async () => {
  await using cluster = await startKafka({ brokers: 2 });
  await using bed = await CheckBed.open({ mysql: inject('mysql'), brokers: cluster.brokers });
  const admin = kafkaClient(cluster.brokers).admin();
  await admin.connect();
  const on = (...replicas: number[]) => [{ partition: 0, replicas }];
  const least = (value: string) => [{ name: 'min.insync.replicas', value }];
  await createTopics(admin, [
    { topic: 'alone', replicaAssignment: on(2), configEntries: least('1') },
    { topic: 'both', replicaAssignment: on(1, 2), configEntries: least('2') },
    { topic: 'either', replicaAssignment: on(1, 2), configEntries: least('1') },
  ]);
  await admin.disconnect();
  for (const topic of ['alone', 'both', 'either']) {
    await bed.sql("INSERT INTO outbox (topic, aggregate_id) VALUES (?, '1')", [topic]);
  }
  const kafka = { createTopics: { partitions: 1, replicationFactor: 3 } };
  const more = { kafka, failures: { deadLetterTopic: 'later' } };
  expect(told(await bed.check(more), KAFKA_CHECKS)).toEqual([
    'error topic: dead-letter topic later does not exist, and kafka.createTopics asks for 3 replicas of 2 brokers',
    'warning topic-replication: topic alone has one replica',
    'warning topic-replication: topic both has 2 replicas and min.insync.replicas is 2 too',
    'warning topic-replication: min.insync.replicas of topic either is 1',
  ]);
  await cluster.nodes[1].kill();
  const noticed = async () => {
    const found = told(await bed.check(), ['topic', 'topic-replication']);
    return found.some((line) => line.includes('in sync,')) && found.some((line) => line.includes('no leader')) && found;
  };
  expect(await until(noticed, { withinMs: 40_000, what: 'the loss of the broker', everyMs: 500 })).toEqual([
    'error topic: 1 of 1 partitions of topic alone have no leader',
    'error topic-replication: a partition of topic alone has 0 of 1 replicas in sync, min.insync.replicas is 1',
    'error topic-replication: a partition of topic both has 1 of 2 replicas in sync, min.insync.replicas is 2',
    'warning topic-replication: min.insync.replicas of topic either is 1',
  ]);
});

test('Kafka that is not there: the rest is checked all the same', async () => {
  await using bed = await CheckBed.open({ mysql: inject('mysql'), brokers: ['127.0.0.1:1'] });
  const report = await bed.check();
  expect(report.kafka).toBe(false);
  expect(told(report, KAFKA_CHECKS)).toEqual([
    expect.stringMatching(/^error kafka-connection: .* \(KAFKA_UNREACHABLE\)$/),
  ]);
  expect(report.canary).not.toBeNull();
});

describe('a cluster with logins and rights', () => {
  let cluster: KafkaCluster;
  let bed: CheckBed;
  let ca: string;
  const sasl = (over: object = {}) => ({ mechanism: 'plain', ...KAFKA_USER, ...over });

  beforeAll(async () => {
    const authority = await makeAuthority();
    ca = authority.ca;
    cluster = await startKafka({
      certificate: await authority.issue(),
      // What the second listener says of itself leads nowhere.
      listeners: {
        secure: { tls: 'server' },
        saslplain: { sasl: 'plain' },
        lost: { sasl: 'plain', through: ['127.0.0.1:1'] },
      },
      properties: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users': 'User:ANONYMOUS',
      },
    });
    bed = await CheckBed.open({ mysql: inject('mysql'), brokers: cluster.listener('saslplain') });
    const admin = kafkaClient(cluster.brokers).admin();
    await admin.connect();
    await createTopics(admin, [{ topic: 'hidden' }, { topic: 'shown' }, { topic: 'open' }]);
    const allow = (topic: string, operation: AclOperationTypes) => ({
      resourceType: AclResourceTypes.TOPIC,
      resourceName: topic,
      resourcePatternType: ResourcePatternTypes.LITERAL,
      principal: `User:${KAFKA_USER.username}`,
      host: '*',
      operation,
      permissionType: AclPermissionTypes.ALLOW,
    });
    const describe = ['shown', 'absent'].map((topic) => allow(topic, AclOperationTypes.DESCRIBE));
    await admin.createAcls({ acl: describe });
    await seen('shown', (topic) => topic.fault === null);
    for (const topic of ['hidden', 'shown', 'open']) {
      await bed.sql("INSERT INTO outbox (topic, aggregate_id) VALUES (?, '1')", [topic]);
    }
    expect(told(await bed.check({ kafka: { sasl: sasl() } }), KAFKA_CHECKS)).toEqual([
      expect.stringMatching(/^error kafka-producer: the user gets no producer id: .*CLUSTER_AUTHORIZATION_FAILED/),
      ...['hidden', 'shown', 'open'].map((topic) => expect.stringContaining(topic) as string),
      'warning topic-replication: topic shown has one replica',
      'unknown topic-size: limits of topic shown could not be read: that needs DESCRIBE_CONFIGS',
    ]);
    await admin.createAcls({ acl: [allow('open', AclOperationTypes.WRITE)] });
    await seen('open', (topic) => topic.mayWrite === true);
    await admin.disconnect();
  }, 120_000);
  afterAll(async () => {
    await bed[Symbol.asyncDispose]();
    await cluster.dispose();
  });

  type Topic = Awaited<ReturnType<typeof lookAtCluster>>['topics'][number];

  /** The broker hears of rights a little later than of topics. */
  async function seen(topic: string, is: (look: Topic) => boolean): Promise<void> {
    const { kafka } = bed.settings({ kafka: { sasl: sasl() } });
    const look = async () => is((await lookAtCluster(kafka, [topic], SILENT)).topics[0]);
    await until(look, { withinMs: 20_000, what: `the rights on ${topic}` });
  }

  test('what may be seen, what may be written, what may not be asked', async () => {
    expect(told(await bed.check({ kafka: { sasl: sasl() } }), KAFKA_CHECKS)).toEqual([
      'error topic: topic hidden cannot be used: hidden (broker error 29) (KAFKA_TOPIC_AUTHORIZATION_FAILED)',
      'error topic: the user may not write topic shown',
      'warning topic-replication: topic shown has one replica',
      'warning topic-replication: topic open has one replica',
      'unknown topic-size: limits of topic shown could not be read: that needs DESCRIBE_CONFIGS',
      'unknown topic-size: limits of topic open could not be read: that needs DESCRIBE_CONFIGS',
    ]);
  });

  test('a topic that is missing, and may not be created either', async () => {
    const kafka = { sasl: sasl(), createTopics: { partitions: 1, replicationFactor: 1 } };
    const failures = { deadLetterTopic: 'absent' };
    expect(told(await bed.check({ kafka, failures }), ['topic']).filter((line) => line.includes('absent'))).toEqual([
      expect.stringMatching(
        /^error topic: dead-letter topic absent does not exist, and may not be created: .* \(KAFKA_TOPIC_AUTHORIZATION_FAILED\)$/,
      ),
    ]);
    // Who may, is told so; nothing is created by asking.
    const free = { brokers: cluster.brokers, createTopics: kafka.createTopics };
    for (let times = 0; times < 2; times++) {
      const { findings } = await bed.check({ kafka: free, failures });
      expect(findings.find(({ fact }) => fact.includes('absent'))?.fact).toBe(
        'dead-letter topic absent will be created (1 partitions, 1 replicas)',
      );
    }
  });

  test('a broker whose advertised address leads nowhere', async () => {
    const report = await bed.check({ kafka: { brokers: cluster.listener('lost'), sasl: sasl() } });
    expect(told(report, ['kafka-brokers'])).toEqual([
      expect.stringMatching(/^error kafka-brokers: broker 127\.0\.0\.1:1 cannot be used: .* \(KAFKA_UNREACHABLE\)$/),
    ]);
  });

  test('TLS: a certificate that is known, one that is not, one that nobody checks', async () => {
    const other = await makeAuthority();
    const said = async (tls: object) => {
      const report = await bed.check({ kafka: { brokers: cluster.listener('secure'), tls } });
      return told(report, ['kafka-connection', 'kafka-brokers']);
    };
    expect(await said({ ca })).toEqual([]);
    expect(await said({ ca: other.ca })).toEqual([
      expect.stringMatching(/^error kafka-connection: Kafka cannot be used at .* \(KAFKA_TLS\)$/),
    ]);
    expect(await said({ verify: false })).toEqual([
      'warning kafka-connection: certificates of brokers are not checked (kafka.tls.verify is false)',
    ]);
  });

  test('a wrong password, and TLS where there is none', async () => {
    const wrong = await bed.check({ kafka: { sasl: sasl({ password: 'wrong' }) } });
    expect(told(wrong, KAFKA_CHECKS)).toEqual([
      expect.stringMatching(/^error kafka-connection: .* \(KAFKA_AUTHENTICATION\)$/),
    ]);
    const tls = await bed.check({ kafka: { sasl: sasl(), tls: true, connectTimeoutMs: 2_000 } });
    expect(told(tls, KAFKA_CHECKS)).toEqual([
      expect.stringMatching(/^error kafka-connection: .* \(KAFKA_(TLS|UNREACHABLE|TIMEOUT)\)$/),
    ]);
  });
});
