import { KAFKA_USER, type KafkaOptions, type SaslMechanism, type SecureListener } from './handles.ts';

/** Where one broker listens and how others reach it. `host:port` each; `listen` may be 0.0.0.0. */
export interface Address {
  readonly listen: string;
  readonly advertised: string;
}

/** One broker of a cluster: its id and its addresses. */
export interface Place {
  readonly id: number;
  /** Between the brokers. */
  readonly internal: Address;
  /** Null for a broker that is no controller. */
  readonly controller: Address | null;
  readonly plain: Address;
  readonly secure: Readonly<Record<string, Address>>;
}

export interface Paths {
  readonly data: string;
  /** PEM file: private key and certificate. */
  readonly keyStore: string;
  /** PEM file: the authority's certificate. */
  readonly trustStore: string;
}

/** A quorum of two would need both brokers, so of two only the first is a controller. */
export function isVoter(id: number, brokers: number): boolean {
  return brokers !== 2 || id === 1;
}

export function heapFor(brokers: number): string {
  return brokers === 1 ? '512m' : '256m';
}

/** A broker's properties file. */
export function brokerProperties(place: Place, places: readonly Place[], paths: Paths, options: KafkaOptions): string {
  const count = places.length;
  const listeners: [string, Address, string][] = [
    ['INTERNAL', place.internal, 'PLAINTEXT'],
    ['PLAIN', place.plain, 'PLAINTEXT'],
  ];
  for (const [name, listener] of Object.entries(options.listeners ?? {})) {
    const { listen, advertised } = place.secure[name];
    const told = listener.through?.[place.id - 1] ?? advertised;
    listeners.push([name.toUpperCase(), { listen, advertised: told }, protocol(listener)]);
  }
  const controller = place.controller === null ? [] : [`CONTROLLER://${place.controller.listen}`];
  const voters = places.filter(({ controller }) => controller !== null);
  const properties = {
    'node.id': String(place.id),
    'process.roles': place.controller === null ? 'broker' : 'broker,controller',
    'controller.quorum.voters': voters.map(({ id, controller }) => `${id}@${controller!.advertised}`).join(','),
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'INTERNAL',
    listeners: [...listeners.map(([name, { listen }]) => `${name}://${listen}`), ...controller].join(','),
    'advertised.listeners': listeners.map(([name, { advertised }]) => `${name}://${advertised}`).join(','),
    'listener.security.protocol.map': [
      ...listeners.map(([name, , security]) => `${name}:${security}`),
      'CONTROLLER:PLAINTEXT',
    ].join(','),
    'log.dirs': paths.data,
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    ...SMALL,
    ...replication(count),
    ...Object.fromEntries(Object.entries(options.listeners ?? {}).flatMap((entry) => security(...entry, paths))),
    ...options.properties,
  };
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

/** Arguments of `StorageTool format`: users of SCRAM live in the metadata log. */
export function formatArguments(clusterId: string, file: string): string[] {
  const user = `[name=${KAFKA_USER.username},password=${KAFKA_USER.password}]`;
  const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => ['--add-scram', `${mechanism}=${user}`]);
  // In one word: an id may begin with a hyphen.
  return ['format', '--ignore-formatted', `--cluster-id=${clusterId}`, '-c', file, ...scram];
}

function protocol({ tls, sasl }: SecureListener): string {
  if (sasl === undefined) return tls === undefined ? 'PLAINTEXT' : 'SSL';
  return tls === undefined ? 'SASL_PLAINTEXT' : 'SASL_SSL';
}

function security(name: string, { tls, sasl }: SecureListener, paths: Paths): [string, string][] {
  const prefix = `listener.name.${name.toLowerCase()}`;
  const properties: [string, string][] = [];
  if (tls !== undefined) {
    properties.push(
      [`${prefix}.ssl.keystore.type`, 'PEM'],
      [`${prefix}.ssl.keystore.location`, paths.keyStore],
      [`${prefix}.ssl.truststore.type`, 'PEM'],
      [`${prefix}.ssl.truststore.location`, paths.trustStore],
      [`${prefix}.ssl.client.auth`, tls === 'mutual' ? 'required' : 'none'],
    );
  }
  if (sasl !== undefined) {
    const mechanism = MECHANISMS[sasl];
    properties.push(
      [`${prefix}.sasl.enabled.mechanisms`, mechanism],
      [`${prefix}.${mechanism.toLowerCase()}.sasl.jaas.config`, JAAS[sasl]],
    );
  }
  return properties;
}

const MECHANISMS = {
  plain: 'PLAIN',
  'scram-sha-256': 'SCRAM-SHA-256',
  'scram-sha-512': 'SCRAM-SHA-512',
  oauthbearer: 'OAUTHBEARER',
} satisfies Record<SaslMechanism, string>;

const MODULES = 'org.apache.kafka.common.security';
const SCRAM = `${MODULES}.scram.ScramLoginModule required;`;

const JAAS = {
  plain: `${MODULES}.plain.PlainLoginModule required user_${KAFKA_USER.username}="${KAFKA_USER.password}";`,
  'scram-sha-256': SCRAM,
  'scram-sha-512': SCRAM,
  oauthbearer: `${MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
} satisfies Record<SaslMechanism, string>;

/** For one machine and many short runs. */
const SMALL = {
  'auto.create.topics.enable': 'false',
  'num.partitions': '1',
  'offsets.topic.num.partitions': '3',
  'transaction.state.log.num.partitions': '1',
  'group.initial.rebalance.delay.ms': '0',
  'log.cleaner.dedupe.buffer.size': '8388608',
  'num.network.threads': '2',
  'num.io.threads': '4',
  // A killed broker's registration must expire before it may start again; leaders move when it does.
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '300',
  'controller.quorum.fetch.timeout.ms': '1500',
  'controller.quorum.election.timeout.ms': '700',
  'controller.quorum.election.backoff.max.ms': '300',
};

function replication(brokers: number): Record<string, string> {
  return {
    'default.replication.factor': String(brokers),
    'min.insync.replicas': brokers === 3 ? '2' : '1',
    'offsets.topic.replication.factor': String(brokers),
    'transaction.state.log.replication.factor': String(brokers),
    'transaction.state.log.min.isr': '1',
    'share.coordinator.state.topic.replication.factor': String(brokers),
    'share.coordinator.state.topic.min.isr': '1',
  };
}
