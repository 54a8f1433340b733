import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createPublisher } from '../../../src/kafka/publisher.ts';
import { RelayError } from '../../../src/model/fault.ts';
import type { KafkaSettings, SaslSettings, TlsSettings } from '../../../src/model/settings.ts';
import { makeAuthority } from '../../stack/certificates.ts';
import { KAFKA_USER, type Certificate, type KafkaCluster } from '../../stack/handles.ts';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { startKafka } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';
import { connected, kafkaSettings, makeBatch, newProducer, RecordedLog, told } from '../../stack/publishing.ts';

const TOPIC = 'secured';
const REAUTHENTICATE_MS = 1500;

let cluster: KafkaCluster;
let certificate: Certificate;
let stranger: Certificate;

beforeAll(async () => {
  const authority = await makeAuthority();
  certificate = await authority.issue({ names: ['127.0.0.1'] });
  stranger = await (await makeAuthority()).issue();
  cluster = await startKafka({
    certificate,
    listeners: {
      tls: { tls: 'server' },
      mutual: { tls: 'mutual' },
      saslplain: { sasl: 'plain' },
      scram256: { sasl: 'scram-sha-256' },
      scram512: { tls: 'server', sasl: 'scram-sha-512' },
      oauth: { sasl: 'oauthbearer' },
      brief: { sasl: 'plain' },
    },
    properties: { 'listener.name.brief.plain.connections.max.reauth.ms': String(REAUTHENTICATE_MS) },
  });
  const admin = kafkaClient(cluster.brokers).admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: 1 }] });
  await admin.disconnect();
}, 120_000);
afterAll(() => cluster.dispose());

/** Connects, gets a producer id, sends a batch over a second connection. */
async function delivers(brokers: readonly string[], over: Partial<KafkaSettings>, log?: RecordedLog): Promise<string> {
  await using publisher = await connected(brokers, over, log);
  const producer = await newProducer(publisher);
  return told(await publisher.send(await makeBatch({ topic: TOPIC, producer, values: ['x'] })));
}

/** Why connecting fails: the fault's code and disposition. */
async function refusal(
  brokers: readonly string[],
  over: Partial<KafkaSettings>,
  log = new RecordedLog(),
): Promise<{ told: string; detail: string }> {
  const publisher = createPublisher(kafkaSettings(brokers, over), log);
  try {
    await publisher.connect(new AbortController().signal);
    return { told: 'connected', detail: '' };
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    const { code, disposition, detail } = error.fault;
    return { told: `${code} ${disposition}`, detail };
  } finally {
    await publisher.close(100);
  }
}

/** A secret that stands in a file, as the configuration makes them. */
function fileOf(value: string) {
  const file = { value, read: () => file.value, accepted: () => undefined, refused: () => false };
  return file;
}

describe('TLS', () => {
  const trusting = (over: Partial<TlsSettings> = {}): Partial<KafkaSettings> => ({
    tls: { ca: certificate.ca, verify: true, ...over },
  });
  const localhost = (): string[] => cluster.listener('tls').map((address) => address.replace('127.0.0.1', 'localhost'));

  test('with the right authority and host', async () => {
    expect(await delivers(cluster.listener('tls'), trusting())).toBe('acked');
  });

  test('the host name is checked without being asked for', async () => {
    const { told, detail } = await refusal(localhost(), trusting());
    expect(told).toBe('KAFKA_TLS halt');
    expect(detail).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  test('serverName is checked in place of the host that is dialled', async () => {
    expect(await delivers(localhost(), trusting({ serverName: '127.0.0.1' }))).toBe('acked');
    const { told } = await refusal(cluster.listener('tls'), trusting({ serverName: 'kafka.example' }));
    expect(told).toBe('KAFKA_TLS halt');
  });

  test('a certificate of an authority that is not trusted is refused', async () => {
    const { told } = await refusal(cluster.listener('tls'), trusting({ ca: stranger.ca }));
    expect(told).toBe('KAFKA_TLS halt');
    expect((await refusal(cluster.listener('tls'), { tls: { verify: true } })).told).toBe('KAFKA_TLS halt');
  });

  test('verify: false takes any certificate', async () => {
    expect(await delivers(localhost(), { tls: { verify: false } })).toBe('acked');
  });

  test('a broker that wants a certificate gets ours', async () => {
    const { cert, key } = certificate;
    expect(await delivers(cluster.listener('mutual'), trusting({ cert, key }))).toBe('acked');
  });

  test('without one, or with a stranger’s, there is no way in', async () => {
    expect((await refusal(cluster.listener('mutual'), trusting())).told).toMatch(
      /^KAFKA_(TLS halt|UNREACHABLE retry)$/,
    );
    const { cert, key } = stranger;
    expect((await refusal(cluster.listener('mutual'), trusting({ cert, key }))).told).toMatch(
      /^KAFKA_(TLS halt|UNREACHABLE retry)$/,
    );
  });

  test('PEM text that cannot be read is told before any connection', () => {
    const settings = kafkaSettings(['127.0.0.1:1'], trusting({ cert: 'no PEM', key: 'secret key' }));
    expect(() => createPublisher(settings, new RecordedLog())).toThrow(/^KAFKA_TLS: kafka\.tls/);
  });

  test('a listener that speaks something else is named as a possibility', async () => {
    const plainToTls = await refusal(cluster.listener('tls'), {});
    expect(plainToTls).toMatchObject({ told: 'KAFKA_UNREACHABLE retry' });
    expect(plainToTls.detail).toContain('a listener that wants TLS or SASL');
    expect((await refusal(cluster.brokers, trusting())).told).toMatch(/^KAFKA_(TLS halt|UNREACHABLE retry)$/);
  });
});

describe('SASL by name and password', () => {
  const listeners = [
    ['plain', 'saslplain', false],
    ['scram-sha-256', 'scram256', false],
    ['scram-sha-512', 'scram512', true],
  ] as const;

  const sasl = (mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512', over: object, tls: boolean) => ({
    sasl: { mechanism, ...KAFKA_USER, ...over } satisfies SaslSettings,
    ...(tls ? { tls: { ca: certificate.ca, verify: true } } : {}),
  });

  test.each(listeners)('%s', async (mechanism, listener, tls) => {
    expect(await delivers(cluster.listener(listener), sasl(mechanism, {}, tls))).toBe('acked');
  });

  test.each(listeners)(
    '%s: wrong password, unknown user: halt, and no word of them',
    async (mechanism, listener, tls) => {
      for (const over of [{ password: 'hunter2-wrong' }, { username: 'nobody-here', password: 'hunter2-wrong' }]) {
        const log = new RecordedLog();
        const { told, detail } = await refusal(cluster.listener(listener), sasl(mechanism, over, tls), log);
        expect(told).toBe('KAFKA_AUTHENTICATION halt');
        expect(detail + log.text()).not.toContain('hunter2');
      }
    },
  );

  test('a mechanism that the listener does not offer', async () => {
    const { told } = await refusal(cluster.listener('saslplain'), sasl('scram-sha-256', {}, false));
    expect(told).toBe('KAFKA_UNSUPPORTED_SASL_MECHANISM halt');
  });

  test('no SASL where it is wanted', async () => {
    const { told, detail } = await refusal(cluster.listener('saslplain'), {});
    expect(told).toBe('KAFKA_UNREACHABLE retry');
    expect(detail).toContain('closed the connection');
  });

  test('a session that ends is followed by another, without a fault (KIP-368)', async () => {
    await using publisher = await connected(cluster.listener('brief'), sasl('plain', {}, false));
    const producer = await newProducer(publisher);
    for (let sequence = 0; sequence < 5; sequence++) {
      const batch = await makeBatch({ topic: TOPIC, producer, sequence, values: ['x'] });
      expect(told(await publisher.send(batch))).toBe('acked');
      await sleep(REAUTHENTICATE_MS / 3); // the broker's own clock: nothing to wait for but time
    }
  });
});

describe('SASL OAUTHBEARER', () => {
  let endpoint: Server;
  let respond: (request: IncomingMessage, body: string) => { status: number; body: object } | null;
  let requests: { authorization: string | undefined; body: string }[];

  const token = (expiresInS: number): string => {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const nowS = Math.floor(Date.now() / 1000);
    return `${part({ alg: 'none' })}.${part({ sub: 'relay', iat: nowS - 1000, exp: nowS + expiresInS })}.`;
  };

  beforeEach(async () => {
    requests = [];
    respond = () => ({ status: 200, body: { access_token: token(300), expires_in: 300, token_type: 'Bearer' } });
    endpoint = createServer((request, response) => {
      void text(request).then((body) => {
        requests.push({ authorization: request.headers.authorization, body });
        const answer = respond(request, body);
        if (answer === null) return;
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
      });
    });
    await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    endpoint.closeAllConnections();
    await new Promise((resolve) => endpoint.close(resolve));
  });

  const oauth = (over: object = {}): Partial<KafkaSettings> => ({
    connectTimeoutMs: 20_000,
    sasl: {
      mechanism: 'oauthbearer',
      tokenEndpoint: `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/token`,
      clientId: 'relay id',
      clientSecret: 'hunter2 & more',
      scope: 'kafka',
      ...over,
    },
  });

  test('by a token that is fetched once for all connections', async () => {
    expect(await delivers(cluster.listener('oauth'), oauth())).toBe('acked');
    expect(requests).toEqual([
      {
        authorization: `Basic ${Buffer.from('relay+id:hunter2+%26+more').toString('base64')}`,
        body: 'grant_type=client_credentials&scope=kafka',
      },
    ]);
  });

  test('a token of unknown life is fetched for each connection', async () => {
    respond = () => ({ status: 200, body: { access_token: token(300) } });
    expect(await delivers(cluster.listener('oauth'), oauth())).toBe('acked');
    expect(requests).toHaveLength(2);
  });

  test('a token that the broker refuses: halt, with the broker’s reason', async () => {
    const expired = token(-100);
    respond = () => ({ status: 200, body: { access_token: expired, expires_in: 300 } });
    const log = new RecordedLog();
    const { told, detail } = await refusal(cluster.listener('oauth'), oauth(), log);
    expect(told).toBe('KAFKA_AUTHENTICATION halt');
    expect(detail).toContain('invalid_token');
    expect(detail + log.text()).not.toContain(expired.slice(0, 20));
  });

  test('an endpoint that refuses the client: halt', async () => {
    respond = () => ({ status: 401, body: { error: 'invalid_client', error_description: 'hunter2' } });
    const log = new RecordedLog();
    const { told, detail } = await refusal(cluster.listener('oauth'), oauth(), log);
    expect(told).toBe('KAFKA_AUTHENTICATION halt');
    expect(detail).toContain('answered 401 invalid_client');
    expect(detail + log.text()).not.toContain('hunter2');
  });

  test.each<[string, typeof respond]>([
    ['is out of order', () => ({ status: 503, body: {} })],
    ['is busy', () => ({ status: 429, body: {} })],
    ['does not answer', () => null],
    ['gives no token', () => ({ status: 200, body: { token: 'x' } })],
  ])('an endpoint that %s: retry, in bounded time', async (_what, how) => {
    respond = how;
    const startedMs = performance.now();
    const impatient = { ...oauth(), connectTimeoutMs: 1_000, requestTimeoutMs: 60_000 };
    expect((await refusal(cluster.listener('oauth'), impatient)).told).toMatch(
      /^KAFKA_(AUTHENTICATION|TIMEOUT) retry$/,
    );
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  test('once in, a refusal does not halt', async () => {
    respond = () => ({ status: 200, body: { access_token: token(300) } });
    await using publisher = await connected(cluster.listener('oauth'), oauth());
    const producer = await newProducer(publisher);
    const batch = await makeBatch({ topic: TOPIC, producer, values: ['x'] });
    const rightly = respond;
    respond = () => ({ status: 401, body: { error: 'invalid_client' } });
    expect(told(await publisher.send(batch))).toBe('refused KAFKA_AUTHENTICATION retry');
    respond = rightly;
    expect(told(await publisher.send(batch))).toBe('acked');
  });

  // The endpoint is made here: what is looked at is what it is asked with.
  test('a client secret that stands in a file is read for each token; half a rotation halts nothing', async () => {
    let wanted = 'the first';
    respond = ({ headers }) =>
      headers.authorization === `Basic ${Buffer.from(`relay+id:${wanted.replace(' ', '+')}`).toString('base64')}`
        ? { status: 200, body: { access_token: token(300) } }
        : { status: 401, body: { error: 'invalid_client' } };
    const clientSecret = fileOf('the first');
    await using publisher = await connected(cluster.listener('oauth'), oauth({ clientSecret }));
    const producer = await newProducer(publisher);
    const batch = await makeBatch({ topic: TOPIC, producer, values: ['x'] });
    wanted = 'the second';
    expect(told(await publisher.send(batch))).toBe('refused KAFKA_AUTHENTICATION retry');
    clientSecret.value = 'the second';
    expect(told(await publisher.send(batch))).toBe('acked');
  });
});

describe('secrets that stand in files', () => {
  test('a password is read for each connection; one that is wrong meanwhile halts nothing', async () => {
    const password = fileOf(KAFKA_USER.password);
    const sasl: SaslSettings = { mechanism: 'plain', username: KAFKA_USER.username, password };
    await using publisher = await connected(cluster.listener('brief'), { sasl });
    const producer = await newProducer(publisher);
    let sequence = 0;
    const send = async () => {
      const batch = await makeBatch({ topic: TOPIC, producer, sequence, values: ['x'] });
      const answer = told(await publisher.send(batch));
      if (answer === 'acked') sequence++;
      return answer;
    };
    expect(await send()).toBe('acked');
    password.value = 'half a rotation';
    const refused = 'refused KAFKA_AUTHENTICATION retry';
    await until(async () => (await send()) === refused, { withinMs: 20_000, what: 'the end of the session' });
    password.value = KAFKA_USER.password;
    expect(await send()).toBe('acked');
  });

  test('certificate, key and authority are read for each connection; a pair that does not match halts nothing', async () => {
    const [ca, cert, key] = [certificate.ca, certificate.cert, certificate.key].map(fileOf);
    const tls = { ca, cert, key, verify: true };
    const publisher = createPublisher(kafkaSettings(cluster.listener('mutual'), { tls }), new RecordedLog());
    const connect = () => publisher.connect(new AbortController().signal);
    try {
      await connect();
      key.value = stranger.key; // the other half follows
      await expect(publisher.newProducer()).resolves.toBeDefined(); // by the connection that is there
      const batch = await makeBatch({ topic: TOPIC, producer: await publisher.newProducer(), values: ['x'] });
      expect(told(await publisher.send(batch))).toBe('refused KAFKA_TLS retry');
      key.value = certificate.key;
      expect(told(await publisher.send(batch))).toBe('acked');
    } finally {
      await publisher.close(100);
    }
  });
});
