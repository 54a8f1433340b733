import { randomBytes } from 'node:crypto';
import { KAFKA_VERSION } from './binaries.ts';
import { alias, ContainerServer, type DockerHost } from './docker.ts';
import type { Broker, KafkaCluster, KafkaOptions } from './handles.ts';
import { type Address, brokerProperties, formatArguments, heapFor, isVoter, type Place } from './kafka-config.ts';
import { freePort } from './ports.ts';
import { brokerServes } from './ready.ts';

export const KAFKA_IMAGE = `apache/kafka:${KAFKA_VERSION}`;
const READY_MS = 120_000;
const INTERNAL = 19_092;
const CONTROLLER = 19_093;
const PLAIN = 9092;
const FIRST_SECURE = 9100;
const FILE = '/tmp/server.properties';
const PATHS = { data: '/tmp/data', keyStore: '/tmp/key-store.pem', trustStore: '/tmp/trust-store.pem' };

/** A Kafka cluster, each broker a container, with the same properties as without Docker. */
export async function startDockerKafka(docker: DockerHost, options: KafkaOptions): Promise<KafkaCluster> {
  const count = options.brokers ?? 1;
  const name = alias('kafka');
  const secure = Object.keys(options.listeners ?? {});
  const published = new Map<number, Record<number, number>>();
  const places: Place[] = [];
  for (let id = 1; id <= count; id++) {
    const ports: Record<number, number> = {};
    const at = async (inside: number): Promise<Address> => {
      ports[inside] = await freePort();
      return { listen: `0.0.0.0:${inside}`, advertised: `${docker.host}:${ports[inside]}` };
    };
    const between = (port: number) => ({ listen: `0.0.0.0:${port}`, advertised: `${name}-${id}:${port}` });
    places.push({
      id,
      internal: between(INTERNAL),
      controller: isVoter(id, count) ? between(CONTROLLER) : null,
      plain: await at(PLAIN),
      secure: Object.fromEntries(
        await Promise.all(secure.map(async (listener, i) => [listener, await at(FIRST_SECURE + i)] as const)),
      ),
    });
    published.set(id, ports);
  }
  const certificate = options.certificate;
  const stores =
    certificate === undefined
      ? []
      : [
          { target: PATHS.keyStore, content: `${certificate.key}\n${certificate.cert}\n` },
          { target: PATHS.trustStore, content: certificate.ca },
        ];
  const clusterId = randomBytes(16).toString('base64url');
  const start = async (place: Place): Promise<Broker & { dispose(): Promise<void> }> => {
    const address = place.plain.advertised;
    const server = await ContainerServer.start(docker, {
      name: `${KAFKA_IMAGE} broker ${place.id} at ${address}`,
      image: KAFKA_IMAGE,
      alias: `${name}-${place.id}`,
      environment: { KAFKA_HEAP_OPTS: `-Xmx${heapFor(count)}` },
      entrypoint: ['/bin/sh', '-c'],
      command: [
        // The image's own start would make another configuration; formatting again changes nothing.
        `/opt/kafka/bin/kafka-storage.sh ${formatArguments(clusterId, FILE)
          .map((argument) => `'${argument}'`)
          .join(' ')} && exec /opt/kafka/bin/kafka-server-start.sh ${FILE}`,
      ],
      ports: published.get(place.id)!,
      files: [{ target: FILE, content: brokerProperties(place, places, PATHS, options) }, ...stores],
      readyMs: READY_MS,
      ready: () => brokerServes(address, place.id),
    });
    return Object.assign(server, { id: place.id, address });
  };
  const outcomes = await Promise.allSettled(places.map(start));
  const nodes = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const dispose = async () => {
    await Promise.all(nodes.map((node) => node.dispose()));
  };
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) {
    await dispose();
    throw failed.reason;
  }
  return {
    brokers: nodes.map(({ address }) => address),
    controllable: true,
    nodes,
    listener: (listener) => places.map((place) => place.secure[listener].advertised),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}
