import type { ClusterLook } from '../kafka/cluster-look.ts';
import type { Fault } from '../model/fault.ts';
import type { KafkaSettings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';

/** No broker answers. Pure. */
export function noClusterFindings(why: Fault, { brokers }: KafkaSettings): Finding[] {
  const fixes: Partial<Record<string, string>> = {
    KAFKA_TLS: "see kafka.tls; caFile names the authority that signed the brokers' certificates",
    KAFKA_AUTHENTICATION: 'see kafka.sasl',
  };
  return [
    findingsOf('kafka', 'kafka-connection').error({
      fact: `Kafka cannot be used at ${brokers.join(', ')}: ${why.detail} (${why.code})`,
      effect: 'nothing is sent; what is committed waits in MySQL',
      fix:
        fixes[why.code] ??
        'see that Kafka runs there and can be reached from here; kafka.brokers, kafka.tls, kafka.sasl',
    }),
  ];
}

/** Connections, who answers, and what the user may do to the cluster. Pure. */
export function brokerFindings({ brokers, producer }: ClusterLook, settings: KafkaSettings): Finding[] {
  return [...security(settings), ...reach(brokers), ...producing(producer)];
}

const isLocal = (address: string): boolean => /^(?:127\.|localhost:|\[::1\])/.test(address);

function security({ tls, sasl, brokers }: KafkaSettings): Finding[] {
  const check = findingsOf('kafka', 'kafka-connection');
  const login = sasl === null ? 'no SASL' : `SASL ${sasl.mechanism.toUpperCase()}`;
  if (tls === null && !brokers.every(isLocal)) {
    return [
      check.warning({
        fact: `connections to Kafka are not encrypted (kafka.tls is off, ${login})`,
        effect: `${sasl === null ? 'events' : 'events and credentials'} can be read on the way`,
        fix: 'kafka.tls: true, on a listener with TLS',
      }),
    ];
  }
  if (tls?.verify === false) {
    return [
      check.warning({
        fact: 'certificates of brokers are not checked (kafka.tls.verify is false)',
        effect: 'anybody on the way can be the broker',
        fix: 'kafka.tls.caFile, and kafka.tls.verify: true',
      }),
    ];
  }
  return [check.good(`Kafka is connected with ${tls === null ? 'no TLS' : 'TLS'}, ${login}`)];
}

function reach(brokers: ClusterLook['brokers']): Finding[] {
  const check = findingsOf('kafka', 'kafka-brokers');
  return brokers.map(({ address, isNamed, fault }) => {
    if (fault === null) return check.good(`broker ${address} answers`);
    const fact = `broker ${address} cannot be used: ${fault.detail} (${fault.code})`;
    if (isNamed) {
      return check.error({
        fact,
        effect: 'the cluster sends the relay there: partitions that it leads are not delivered',
        fix: 'see that the broker runs, and its advertised.listeners: the address must be reachable from here',
      });
    }
    return check.warning({
      fact,
      effect: 'one address fewer to begin with; none of the cluster’s brokers calls itself that',
      fix: 'see kafka.brokers',
    });
  });
}

function producing(producer: Fault | null): Finding[] {
  const check = findingsOf('kafka', 'kafka-producer');
  if (producer === null) return [check.good('the user gets a producer id')];
  return [
    check.error({
      fact: `the user gets no producer id: ${producer.detail} (${producer.code})`,
      effect: 'nothing is sent: the relay writes as an idempotent producer',
      fix: 'allow WRITE on the topics; before Kafka 3.0 also IDEMPOTENT_WRITE on the cluster',
    }),
  ];
}
