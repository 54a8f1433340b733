import { expect, test } from 'vitest';
import type { Disposition } from '../../../src/model/fault.ts';
import { brokerFault, DUPLICATE_SEQUENCE_NUMBER, requestFault, verdictOf } from '../../../src/kafka/fault-table.ts';

/** org.apache.kafka.common.protocol.Errors of Kafka 4.3.1, from code 1 on. */
const NAMES = `OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION INVALID_FETCH_SIZE LEADER_NOT_AVAILABLE
NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE MESSAGE_TOO_LARGE
STALE_CONTROLLER_EPOCH OFFSET_METADATA_TOO_LARGE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS
COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS
NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID
UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE TOPIC_AUTHORIZATION_FAILED
GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_TIMESTAMP UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE
UNSUPPORTED_VERSION TOPIC_ALREADY_EXISTS INVALID_PARTITIONS INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT
INVALID_CONFIG NOT_CONTROLLER INVALID_REQUEST UNSUPPORTED_FOR_MESSAGE_FORMAT POLICY_VIOLATION
OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE
INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS TRANSACTION_COORDINATOR_FENCED
TRANSACTIONAL_ID_AUTHORIZATION_FAILED SECURITY_DISABLED OPERATION_NOT_ATTEMPTED KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND
SASL_AUTHENTICATION_FAILED UNKNOWN_PRODUCER_ID REASSIGNMENT_IN_PROGRESS DELEGATION_TOKEN_AUTH_DISABLED
DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DELEGATION_TOKEN_AUTHORIZATION_FAILED DELEGATION_TOKEN_EXPIRED INVALID_PRINCIPAL_TYPE NON_EMPTY_GROUP
GROUP_ID_NOT_FOUND FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND TOPIC_DELETION_DISABLED
FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNSUPPORTED_COMPRESSION_TYPE STALE_BROKER_EPOCH OFFSET_NOT_AVAILABLE
MEMBER_ID_REQUIRED PREFERRED_LEADER_NOT_AVAILABLE GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID
ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED NO_REASSIGNMENT_IN_PROGRESS GROUP_SUBSCRIBED_TO_TOPIC INVALID_RECORD
UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED PRODUCER_FENCED RESOURCE_NOT_FOUND DUPLICATE_RESOURCE
UNACCEPTABLE_CREDENTIAL INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED
PRINCIPAL_DESERIALIZATION_FAILURE SNAPSHOT_NOT_FOUND POSITION_OUT_OF_RANGE UNKNOWN_TOPIC_ID
DUPLICATE_BROKER_REGISTRATION BROKER_ID_NOT_REGISTERED INCONSISTENT_TOPIC_ID INCONSISTENT_CLUSTER_ID
TRANSACTIONAL_ID_NOT_FOUND FETCH_SESSION_TOPIC_ID_ERROR INELIGIBLE_REPLICA NEW_LEADER_ELECTED
OFFSET_MOVED_TO_TIERED_STORAGE FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID UNSUPPORTED_ASSIGNOR STALE_MEMBER_EPOCH
MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE UNKNOWN_CONTROLLER_ID UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE
INVALID_REGISTRATION TRANSACTION_ABORTABLE INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
FENCED_STATE_EPOCH INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND INVALID_REGULAR_EXPRESSION REBOOTSTRAP_REQUIRED
STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED SHARE_SESSION_LIMIT_REACHED`.split(
  /\s+/,
);

const ALL = new Map<number, string>([[-1, 'UNKNOWN_SERVER_ERROR'], ...NAMES.map((name, i) => [i + 1, name] as const)]);

/** Every code that is not simply retried. */
const DECIDED: Readonly<Record<Exclude<Disposition, 'retry'>, readonly number[]>> = {
  renew: [45, 47, 48, 49, 52, 59, 90, 105, 120],
  reject: [2, 10, 18, 32, 44, 87],
  park: [17, 29, 37, 38, 39, 40, 43],
  halt: [21, 31, 33, 34, 35, 42, 53, 54, 58, 61, 62, 63, 64, 65, 66, 67, 76, 93],
};

/** Of requests that the relay never makes: no better than a code that nobody knows. */
const NOT_OURS = [
  1, 4, 12, 22, 23, 24, 25, 26, 27, 28, 30, 46, 50, 68, 69, 70, 71, 73, 78, 79, 81, 82, 84, 85, 86, 88, 91, 92, 94, 95,
  96, 98, 99, 101, 102, 104, 106, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 121, 122, 123, 124, 125, 126,
  127, 128, 130, 131, 132, 133,
];

/** Retried with nothing appended; every other retried code may have appended. */
const RETRIED_NOT_APPENDED = [14, 15, 16, 19, 36, 41, 51, 55, 89];

test('every error code of the protocol has its own name', () => {
  expect(ALL.size).toBe(134);
  for (const [errorCode, name] of ALL) {
    expect(verdictOf(errorCode).name, `code ${errorCode}`).toBe(name);
    expect(brokerFault(errorCode, 'orders-3')).toMatchObject({
      code: `KAFKA_${name}`,
      detail: `orders-3 (broker error ${errorCode})`,
    });
  }
});

test('every error code has the disposition that was decided for it', () => {
  const found: Record<string, number[]> = {};
  for (const errorCode of ALL.keys()) {
    if (NOT_OURS.includes(errorCode)) {
      expect(verdictOf(errorCode), `code ${errorCode}`).toMatchObject({ disposition: 'reject', appended: 'maybe' });
    } else (found[verdictOf(errorCode).disposition] ??= []).push(errorCode);
  }
  const { retry, ...decided } = found;
  expect(decided).toEqual(DECIDED);
  expect(retry).toHaveLength(ALL.size - NOT_OURS.length - Object.values(DECIDED).flat().length);
});

test('a batch is thought not to be in the log only where the broker checks before it appends', () => {
  const notAppended = [...ALL.keys()].filter((errorCode) => verdictOf(errorCode).appended === 'no');
  expect(notAppended.sort((a, b) => a - b)).toEqual(
    [...RETRIED_NOT_APPENDED, ...Object.values(DECIDED).flat()].sort((a, b) => a - b),
  );
});

test.each([3, 5, 6, 7, 13, 20, 56])(
  'code %i may come after the append, when leadership, topic or disk are lost',
  (errorCode) => expect(verdictOf(errorCode)).toMatchObject({ disposition: 'retry', appended: 'maybe' }),
);

test.each([134, 999, 32767, -2, -32768])('code %i of a later Kafka is a refusal that may not be one', (errorCode) => {
  expect(verdictOf(errorCode)).toEqual({ name: `ERROR_${errorCode}`, disposition: 'reject', appended: 'maybe' });
  expect(brokerFault(errorCode, 'x').code).toBe(`KAFKA_ERROR_${errorCode}`);
});

test('where no batch was sent, none is refused', () => {
  const dispositions = [...ALL.keys(), 999].map((errorCode) => requestFault(errorCode, 'x').disposition);
  expect(dispositions).not.toContain('reject');
  expect(requestFault(17, 'x')).toEqual(brokerFault(17, 'x'));
});

test('the sequence number of a duplicate is the protocol’s', () => {
  expect(ALL.get(DUPLICATE_SEQUENCE_NUMBER)).toBe('DUPLICATE_SEQUENCE_NUMBER');
});
