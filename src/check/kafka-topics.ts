import type { ClusterLook, TopicLook } from '../kafka/cluster-look.ts';
import type { Fault } from '../model/fault.ts';
import type { KafkaSettings, Settings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';

/** Those that the configuration names: topics of outboxes, and the dead-letter topic. */
export function configuredTopics({ outboxes, failures }: Settings): string[] {
  const fixed = outboxes.flatMap(({ topic }) => (topic.kind === 'fixed' ? [topic.topic] : []));
  return [...new Set([...fixed, ...(failures.deadLetterTopic === null ? [] : [failures.deadLetterTopic])])];
}

/** Each topic that is named by the configuration or by pending rows. Pure. */
export function topicFindings({ topics, brokers }: ClusterLook, settings: Settings): Finding[] {
  const named = brokers.filter(({ isNamed }) => isNamed).length;
  if (topics.length > 0) return topics.flatMap((topic) => oneTopic(topic, named, settings));
  return [findingsOf('topics', 'topic').good('no topic is named by the configuration, none by pending rows')];
}

/** A program of Kafka's own, as it can be pasted; where login or TLS is asked for, `--command-config` is people's to add. */
function tool(name: string, { brokers }: KafkaSettings): string {
  return `${name}.sh --bootstrap-server ${brokers[0]}`;
}

function oneTopic(look: TopicLook, brokers: number, { kafka, failures }: Settings): Finding[] {
  const check = findingsOf('topics', 'topic');
  const { topic, fault, isMissing, creation: refusal, partitions, leaderless, mayWrite } = look;
  const isLetters = topic === failures.deadLetterTopic;
  const name = `${isLetters ? 'dead-letter topic' : 'topic'} ${topic}`;
  const effect = isLetters ? 'rows that fail stay pending until it takes them' : 'its rows will be parked';
  if (isMissing && kafka.createTopics !== null) return creation(name, brokers, refusal, kafka.createTopics);
  if (isMissing) {
    const fix = `${tool('kafka-topics', kafka)} --create --topic ${topic} --partitions N --replication-factor 3`;
    return [check.error({ fact: `${name} does not exist`, effect, fix })];
  }
  if (fault !== null) {
    const fix = `allow WRITE and DESCRIBE on topic ${topic}`;
    return [check.error({ fact: `${name} cannot be used: ${fault.detail} (${fault.code})`, effect, fix })];
  }
  const found: Finding[] = [];
  if (mayWrite === false) {
    const fix = `${tool('kafka-acls', kafka)} --add --allow-principal User:... --producer --topic ${topic}`;
    found.push(check.error({ fact: `the user may not write ${name}`, effect, fix }));
  }
  if (leaderless > 0) {
    found.push(
      check.error({
        fact: `${leaderless} of ${partitions} partitions of ${name} have no leader`,
        effect: 'their rows wait until one is elected',
        fix: `see which brokers are down: ${tool('kafka-topics', kafka)} --describe --unavailable-partitions`,
      }),
    );
  }
  found.push(...replication(look, name, kafka), ...sizes(look, name, kafka));
  return found.length > 0
    ? found
    : [check.good(`${name} has ${partitions} partitions${mayWrite === true ? ', the user may write it' : ''}`)];
}

function creation(
  name: string,
  brokers: number,
  refusal: Fault | null,
  { partitions, replicationFactor }: NonNullable<KafkaSettings['createTopics']>,
): Finding[] {
  const check = findingsOf('topics', 'topic');
  if (replicationFactor <= brokers && refusal !== null) {
    return [
      check.error({
        fact: `${name} does not exist, and may not be created: ${refusal.detail} (${refusal.code})`,
        effect: 'its rows will be parked',
        fix: 'allow CREATE on it, or create it',
      }),
    ];
  }
  if (replicationFactor <= brokers) {
    return [check.good(`${name} will be created (${partitions} partitions, ${replicationFactor} replicas)`)];
  }
  return [
    check.error({
      fact: `${name} does not exist, and kafka.createTopics asks for ${replicationFactor} replicas of ${brokers} brokers`,
      effect: 'it cannot be created: its rows will be parked',
      fix: 'kafka.createTopics.replicationFactor',
    }),
  ];
}

/** acks=all waits for min.insync.replicas. */
function replication({ topic, replicas, inSync, config }: TopicLook, name: string, kafka: KafkaSettings): Finding[] {
  const check = findingsOf('topics', 'topic-replication');
  const least = config?.minInsyncReplicas ?? null;
  const alter = (value: string) =>
    `${tool('kafka-configs', kafka)} --alter --topic ${topic} --add-config min.insync.replicas=${value}`;
  if (replicas === null) return [];
  if (least !== null && least > replicas) {
    return [
      check.error({
        fact: `${name} has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'} and min.insync.replicas is ${least}`,
        effect: 'no record is ever acknowledged',
        fix: alter(String(Math.max(1, replicas - 1))),
      }),
    ];
  }
  if (least !== null && inSync !== null && inSync < least) {
    return [
      check.error({
        fact: `a partition of ${name} has ${inSync} of ${replicas} replicas in sync, min.insync.replicas is ${least}`,
        effect: 'its rows wait until more are',
        fix: `see which brokers are down: ${tool('kafka-topics', kafka)} --describe --under-min-isr-partitions`,
      }),
    ];
  }
  if (replicas === 1) {
    return [
      check.warning({
        fact: `${name} has one replica`,
        effect: 'what was acknowledged is lost with its broker; while that is down, rows wait',
        fix: 'kafka-reassign-partitions.sh, to 3 replicas with min.insync.replicas=2',
      }),
    ];
  }
  if (least === replicas) {
    return [
      check.warning({
        fact: `${name} has ${replicas} replicas and min.insync.replicas is ${least} too`,
        effect: 'while any broker is down, rows wait',
        fix: alter(String(replicas - 1)),
      }),
    ];
  }
  if (least !== 1) return [];
  return [
    check.warning({
      fact: `min.insync.replicas of ${name} is 1`,
      effect: 'a record may be acknowledged by one broker alone, and lost with it',
      fix: alter('2'),
    }),
  ];
}

function sizes({ topic, config }: TopicLook, name: string, kafka: KafkaSettings): Finding[] {
  const { batchBytes } = kafka;
  const check = findingsOf('topics', 'topic-size');
  if (config === null) {
    return [
      check.unknown({
        fact: `limits of ${name} could not be read: that needs DESCRIBE_CONFIGS`,
        effect: 'a batch that is too large is only found out by its refusal',
        fix: `${tool('kafka-acls', kafka)} --add --allow-principal User:... --operation DescribeConfigs --topic ${topic}`,
      }),
    ];
  }
  const most = config.maxMessageBytes;
  if (most === null || most >= batchBytes) return [];
  return [
    check.warning({
      fact: `max.message.bytes of ${name} is ${most}, kafka.batchBytes ${batchBytes}`,
      effect: 'larger batches are sent in parts; a row that is larger fails',
      fix: `${tool('kafka-configs', kafka)} --alter --topic ${topic} --add-config max.message.bytes=${batchBytes + 12}, or a smaller kafka.batchBytes`,
    }),
  ];
}
