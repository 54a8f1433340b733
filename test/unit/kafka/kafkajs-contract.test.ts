import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import {
  apiKeys,
  authenticators,
  createBroker,
  createEncoder,
  createKafkaJsLogger,
  exchange,
  kafkaJsVersion,
  type ApiVersions,
} from '../../../src/kafka/kafkajs-internals.ts';
import packageJson from '../../../package.json' with { type: 'json' };

/**
 * What src/kafka relies on inside kafkajs. When this fails after an update, kafkajs-internals.ts is the file to read;
 * its pitfalls (docs: the comments there) must be looked at again before the pin moves.
 */
const require = createRequire(import.meta.url);
const source = (path: string): string => require.resolve(`kafkajs/src/${path}`);

const broker = (over: Partial<Parameters<typeof createBroker>[0]> = {}): ReturnType<typeof createBroker> =>
  createBroker({
    host: '127.0.0.1',
    port: 1,
    clientId: 'contract',
    sasl: null,
    socketFactory: () => {
      throw new Error('not dialled here');
    },
    connectTimeoutMs: 100,
    logger: createKafkaJsLogger(() => undefined),
    ...over,
  });

test('the pin is exact, and it is the version that is installed', () => {
  expect(packageJson.dependencies.kafkajs).toBe('2.2.4');
  expect(kafkaJsVersion).toBe('2.2.4');
});

test.each([
  'broker',
  'network/connectionPool',
  'network/requestQueue',
  'protocol/encoder',
  'protocol/requests',
  'protocol/requests/apiKeys',
  'loggers',
  'broker/saslAuthenticator/plain',
  'broker/saslAuthenticator/scram256',
  'broker/saslAuthenticator/scram512',
])('src/%s can be required', (path) => expect(source(path)).toContain('kafkajs'));

describe('a broker', () => {
  test('has two connections, the first for everything but Fetch, neither connected', () => {
    const { pool } = broker().connectionPool;
    expect(pool).toHaveLength(2);
    const [connection] = pool;
    expect(connection.isConnected()).toBe(false);
    expect(connection.sessionLifetime.toNumber()).toBe(0);
    for (const method of ['processData', 'rejectRequests', 'send', 'nextCorrelationId'] as const) {
      expect(connection, method).toHaveProperty(method, expect.any(Function));
    }
    expect([connection.nextCorrelationId(), connection.nextCorrelationId()]).toEqual([0, 1]);
    const byRequest = broker().connectionPool as unknown as {
      getConnectionByRequest: (of: object) => Promise<unknown>;
      getConnection: (index: number) => number;
    };
    byRequest.getConnection = (index) => index;
    expect(byRequest.getConnectionByRequest({ request: { apiKey: apiKeys.Metadata } })).toBe(0);
  });

  test('dials with host, port and onConnect through our socket factory', async () => {
    let dialled: object = {};
    const refusing = broker({
      socketFactory: (options) => {
        dialled = options;
        throw new Error('refused');
      },
    });
    await expect(refusing.connect()).rejects.toMatchObject({ name: 'KafkaJSConnectionError' });
    expect(dialled).toMatchObject({ host: '127.0.0.1', port: 1 });
    expect(dialled).toHaveProperty('onConnect');
  });
});

describe('the request queue', () => {
  const queue = () => broker().connectionPool.pool[0].requestQueue;
  const entry = (settled: (outcome: unknown) => void) => ({
    apiKey: 0,
    apiName: 'Produce',
    apiVersion: 7,
    correlationId: 5,
    resolve: settled,
    reject: settled,
  });

  test('sends at once, and settles the entry with the payload of its correlation id', () => {
    const made = queue() as ReturnType<typeof queue> & { fulfillRequest: (answer: object) => void };
    let sent = 0;
    let settled: unknown = null;
    made.push({
      entry: entry((outcome) => (settled = outcome)),
      expectResponse: true,
      requestTimeout: null,
      sendRequest: () => sent++,
    });
    expect(sent).toBe(1);
    expect(made.inflight.has(5)).toBe(true);
    made.fulfillRequest({ correlationId: 5, payload: Buffer.from('x'), size: 1 });
    expect(settled).toMatchObject({ payload: Buffer.from('x') });
  });

  test('rejects what is in flight', () => {
    const { pool } = broker().connectionPool;
    let settled: unknown = null;
    pool[0].requestQueue.push({
      entry: entry((outcome) => (settled = outcome)),
      expectResponse: true,
      requestTimeout: null,
      sendRequest: () => undefined,
    });
    const error = new Error('lost');
    pool[0].rejectRequests(error);
    expect(settled).toBe(error);
    expect(pool[0].requestQueue.inflight.size).toBe(0);
  });

  test('sets no timer of its own for time-outs, and none when nothing is pending (idle busy loop)', () => {
    const made = queue() as unknown as {
      enforceRequestTimeout: boolean;
      throttleCheckTimeoutId: unknown;
      pending: unknown[];
      scheduleCheckPendingRequests: () => void;
      destroy: () => void;
    };
    expect(made.enforceRequestTimeout).toBe(false);
    made.scheduleCheckPendingRequests();
    expect(made.throttleCheckTimeoutId).toBeNull();
    made.pending.push({});
    made.scheduleCheckPendingRequests();
    expect(made.throttleCheckTimeoutId).not.toBeNull();
    made.pending = [];
    made.destroy();
  });
});

describe('the codecs', () => {
  const versions: ApiVersions = {
    [apiKeys.Metadata]: { minVersion: 0, maxVersion: 13 },
    [apiKeys.InitProducerId]: { minVersion: 0, maxVersion: 5 },
    [apiKeys.CreateTopics]: { minVersion: 2, maxVersion: 7 },
    [apiKeys.DescribeConfigs]: { minVersion: 1, maxVersion: 4 },
  };

  test('take the newest version that both sides know', () => {
    const made = (api: 'Metadata' | 'InitProducerId' | 'CreateTopics') => {
      const { apiKey, apiVersion, apiName } = exchange(versions, api, { topics: [] }).request;
      return [apiKey, apiVersion, apiName];
    };
    expect(made('Metadata')).toEqual([3, 6, 'Metadata']);
    expect(made('InitProducerId')).toEqual([22, 1, 'InitProducerId']);
    expect(made('CreateTopics')).toEqual([19, 3, 'CreateTopics']);
  });

  test('encode no topics as none, where the metadata request of kafkajs would ask for all', async () => {
    expect(createEncoder().writeArray([]).writeBoolean(false).buffer.toString('hex')).toBe('0000000000');
    const theirs = await exchange(versions, 'Metadata', { topics: [] }).request.encode();
    expect(theirs.buffer.toString('hex')).toBe('ffffffff01');
    expect(createEncoder().writeArray(['ab']).writeBoolean(false).buffer.toString('hex')).toBe('000000010002616200');
  });

  test('ask for some configuration entries of a topic', async () => {
    const resources = [{ type: 2, name: 'a', configNames: ['b'] }];
    const { request } = exchange(versions, 'DescribeConfigs', { resources });
    expect([request.apiKey, request.apiVersion]).toEqual([32, 2]);
    expect((await request.encode()).buffer.toString('hex')).toBe('00000001' + '02000161' + '00000001000162' + '00');
  });

  test('leave error codes in the answer', async () => {
    const { response } = exchange(versions, 'InitProducerId', { transactionalId: null, transactionTimeout: 0 });
    const payload = Buffer.from('00000000002dffffffffffffffffffff', 'hex');
    const answer = await response.parse(await response.decode(payload));
    expect(answer).toMatchObject({ errorCode: 45, producerId: '-1', producerEpoch: -1 });
  });
});

test('the SASL mechanisms are providers of authenticators', () => {
  const args = {
    host: 'h',
    port: 1,
    logger: createKafkaJsLogger(() => undefined).namespace('x'),
    saslAuthenticate: () => Promise.reject(new Error('unused')),
  };
  for (const mechanism of Object.values(authenticators)) {
    expect(mechanism({ username: 'u', password: 'p' })(args)).toHaveProperty('authenticate', expect.any(Function));
  }
});

test('the logger hands on namespace, message and broker', () => {
  const lines: unknown[] = [];
  const logger = createKafkaJsLogger((entry) => lines.push(entry)).namespace('Connection') as unknown as {
    error: (message: string, extra: object) => void;
    debug: (message: string) => void;
  };
  logger.debug('not wanted');
  logger.error('lost', { broker: 'b:1', stack: '…' });
  expect(lines).toMatchObject([{ namespace: 'Connection', level: 1, log: { message: 'lost', broker: 'b:1' } }]);
});
