import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { fault } from '../../../src/model/fault.ts';
import { clientFault, isPeerClosed } from '../../../src/kafka/client-faults.ts';

type ErrorClass = new (...args: unknown[]) => Error;
const errors = createRequire(import.meta.url)('kafkajs/src/errors') as Record<string, ErrorClass>;

const make = (name: string, ...args: unknown[]): Error => new errors[name](...args);
const node = (code: string): Error => Object.assign(new Error(`it says ${code}`), { code });

const RETRY = 'retry';

/** Every error class that kafkajs exports, and what it is to the relay. */
const CLASSES: readonly (readonly [Error, code: string, disposition: string])[] = [
  [make('KafkaJSConnectionError', 'x', {}), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSConnectionError', 'x', { code: 'ECONNREFUSED' }), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSConnectionError', 'x', { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }), 'KAFKA_TLS', 'halt'],
  [make('KafkaJSConnectionClosedError', 'x', {}), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSBrokerNotFound', 'x'), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSNoBrokerAvailableError'), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSMetadataNotLoaded', 'x'), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSTopicMetadataNotLoaded', 'x', {}), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSStaleTopicMetadataAssignment', 'x', {}), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSGroupCoordinatorNotFound', 'x'), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSRequestTimeoutError', 'x', {}), 'KAFKA_TIMEOUT', RETRY],
  [make('KafkaJSTimeout', 'x'), 'KAFKA_TIMEOUT', RETRY],
  [make('KafkaJSLockTimeout', 'x'), 'KAFKA_TIMEOUT', 'renew'],
  [make('KafkaJSSASLAuthenticationError', 'x'), 'KAFKA_AUTHENTICATION', 'halt'],
  [make('KafkaJSServerDoesNotSupportApiKey', 'x', {}), 'KAFKA_UNSUPPORTED_VERSION', 'halt'],
  [make('KafkaJSNotImplemented', 'x'), 'KAFKA_UNSUPPORTED_VERSION', 'halt'],
  [make('KafkaJSProtocolError', { code: 6, message: 'x' }), 'KAFKA_NOT_LEADER_OR_FOLLOWER', RETRY],
  [make('KafkaJSCreateTopicError', { code: 17, message: 'x' }, 't'), 'KAFKA_INVALID_TOPIC_EXCEPTION', 'park'],
  [make('KafkaJSOffsetOutOfRange', { code: 1, message: 'x' }, {}), 'KAFKA_OFFSET_OUT_OF_RANGE', RETRY],
  [make('KafkaJSMemberIdRequired', { code: 79, message: 'x' }, {}), 'KAFKA_MEMBER_ID_REQUIRED', RETRY],
  [
    make('KafkaJSAlterPartitionReassignmentsError', { code: 60, message: 'x' }, 't', 0),
    'KAFKA_REASSIGNMENT_IN_PROGRESS',
    RETRY,
  ],
  [make('KafkaJSError', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSNonRetriableError', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSPartialMessageError', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSUnsupportedMagicByteInMessageSet', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSInvariantViolation', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSInvalidVarIntError', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSInvalidLongError', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSDeleteGroupsError', 'x'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSDeleteTopicRecordsError', { partitions: [] }), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSFetcherRebalanceError'), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSAggregateError', 'x', []), 'KAFKA_CLIENT_BUG', 'renew'],
  [make('KafkaJSAggregateError', 'x', [node('ECONNREFUSED')]), 'KAFKA_UNREACHABLE', RETRY],
  [make('KafkaJSNumberOfRetriesExceeded', node('ECONNRESET'), {}), 'KAFKA_UNREACHABLE', RETRY],
];

describe('what kafkajs throws', () => {
  test.each(CLASSES.map(([error, code, disposition]) => [error.name, error, code, disposition] as const))(
    '%s',
    (_name, error, code, disposition) => {
      expect(clientFault(error, 'kafka-1:9092')).toMatchObject({ code, disposition });
    },
  );

  test('no error class is forgotten', () => {
    const classes = Object.keys(errors).filter((name) => name.startsWith('KafkaJS'));
    const seen = new Set(CLASSES.map(([error]) => error.constructor.name));
    expect(classes.filter((name) => !seen.has(name))).toEqual([]);
  });

  test('the cause counts, not the wrapper that says "not retriable"', () => {
    const wrapped = make('KafkaJSNonRetriableError', 'x', {
      cause: make('KafkaJSNumberOfRetriesExceeded', make('KafkaJSProtocolError', { code: 58, message: 'x' }), {}),
    });
    expect(clientFault(wrapped, 'x')).toMatchObject({ code: 'KAFKA_SASL_AUTHENTICATION_FAILED', disposition: 'halt' });
  });
});

describe('what Node throws', () => {
  test.each([
    ['ECONNREFUSED', 'KAFKA_UNREACHABLE', RETRY],
    ['ECONNRESET', 'KAFKA_UNREACHABLE', RETRY],
    ['EPIPE', 'KAFKA_UNREACHABLE', RETRY],
    ['ETIMEDOUT', 'KAFKA_UNREACHABLE', RETRY],
    ['EHOSTUNREACH', 'KAFKA_UNREACHABLE', RETRY],
    ['ENOTFOUND', 'KAFKA_UNREACHABLE', RETRY],
    ['EAI_AGAIN', 'KAFKA_UNREACHABLE', RETRY],
    ['EMFILE', 'KAFKA_UNREACHABLE', RETRY],
    ['ERR_STREAM_DESTROYED', 'KAFKA_UNREACHABLE', RETRY],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'KAFKA_TLS', 'halt'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'KAFKA_TLS', 'halt'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'KAFKA_TLS', 'halt'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'KAFKA_TLS', 'halt'],
    ['CERT_HAS_EXPIRED', 'KAFKA_TLS', 'halt'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'KAFKA_TLS', 'halt'],
    ['EPROTO', 'KAFKA_TLS', 'halt'],
    ['ERR_OUT_OF_RANGE', 'KAFKA_CLIENT_BUG', 'renew'],
  ])('%s', (nodeCode, code, disposition) => {
    expect(clientFault(node(nodeCode), 'x')).toMatchObject({ code, disposition });
  });
});

test.each([new TypeError('x is undefined'), new RangeError('x'), 'a string', undefined, { code: 6 }])(
  'anything else is a bug of the client: %s',
  (thrown) => {
    expect(clientFault(thrown, 'x')).toMatchObject({ code: 'KAFKA_CLIENT_BUG', disposition: 'renew' });
  },
);

test('a fault of our own stays what it is', () => {
  const ours = fault('KAFKA_RESPONSE_MISMATCH', 'retry', 'x');
  expect(clientFault(ours, 'elsewhere')).toBe(ours.fault);
});

test('message texts of the client stay out of the detail, but for those on certificates', () => {
  const secret = make('KafkaJSSASLAuthenticationError', 'password hunter2 is wrong');
  expect(clientFault(secret, 'kafka-1:9092').detail).toBe('kafka-1:9092: the SASL exchange failed');
  const name = Object.assign(new Error('Host: a. is not in the cert'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  expect(clientFault(name, 'a:9092').detail).toContain('is not in the cert');
});

test('who closed the connection', () => {
  expect(isPeerClosed(make('KafkaJSConnectionClosedError', 'x', {}))).toBe(true);
  expect(isPeerClosed(node('ECONNRESET'))).toBe(true);
  expect(isPeerClosed(fault('KAFKA_UNREACHABLE', 'retry', 'x', node('EPIPE')))).toBe(true);
  expect(isPeerClosed(fault('KAFKA_TIMEOUT', 'retry', 'x'))).toBe(false);
  expect(isPeerClosed(node('ECONNREFUSED'))).toBe(false);
});
