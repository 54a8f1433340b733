import type { Disposition, Fault } from '../model/fault.ts';

/**
 * What a broker's error code means to the relay.
 * `appended: 'maybe'`: the batch may be in the log all the same, so only the identical bytes may follow (the broker
 * finds the duplicate by its sequence number). A leader answers some of these codes *after* it has appended: when it
 * loses the leadership, the topic or its disk while it waits for the replicas (kafka.server.DelayedProduce).
 */
export interface Verdict {
  /** The protocol's own name of the code (org.apache.kafka.common.protocol.Errors). */
  readonly name: string;
  readonly disposition: Disposition;
  readonly appended: 'no' | 'maybe';
}

/** Not a fault: the batch with this sequence number is in the log already. */
export const DUPLICATE_SEQUENCE_NUMBER = 46;
export const UNKNOWN_TOPIC_OR_PARTITION = 3;
export const LEADER_NOT_AVAILABLE = 5;
export const TOPIC_ALREADY_EXISTS = 36;
export const CORRUPT_MESSAGE = 2;
export const SASL_AUTHENTICATION_FAILED = 58;
export const CLUSTER_AUTHORIZATION_FAILED = 31;
export const NOT_CONTROLLER = 41;
export const THROTTLING_QUOTA_EXCEEDED = 89;

/**
 * Total: a code that is not in the table is of a later Kafka, or none of ours. What it is said of is at fault then, for
 * all we know; the sender asks more than once before it believes that.
 */
export function verdictOf(errorCode: number): Verdict {
  return TABLE.get(errorCode) ?? { name: `ERROR_${errorCode}`, disposition: 'reject', appended: 'maybe' };
}

export function brokerFault(errorCode: number, detail: string): Fault {
  const { name, disposition } = verdictOf(errorCode);
  return { code: `KAFKA_${name}`, disposition, detail: `${detail} (broker error ${errorCode})` };
}

/** The same where no batch was sent that could be at fault. */
export function requestFault(errorCode: number, detail: string): Fault {
  const found = brokerFault(errorCode, detail);
  return found.disposition === 'reject' ? { ...found, disposition: 'retry' } : found;
}

type Row = readonly [errorCode: number, name: string];

function rows(disposition: Disposition, appended: 'no' | 'maybe', of: readonly Row[]): [number, Verdict][] {
  return of.map(([errorCode, name]) => [errorCode, { name, disposition, appended }]);
}

const TABLE: ReadonlyMap<number, Verdict> = new Map([
  // The cluster is in motion, or the broker does not know what happened.
  ...rows('retry', 'maybe', [
    [-1, 'UNKNOWN_SERVER_ERROR'],
    // A new topic that has not reached this broker yet, or a deleted one: `routes.ts` bounds it, then it is parked.
    [UNKNOWN_TOPIC_OR_PARTITION, 'UNKNOWN_TOPIC_OR_PARTITION'],
    [LEADER_NOT_AVAILABLE, 'LEADER_NOT_AVAILABLE'],
    [6, 'NOT_LEADER_OR_FOLLOWER'],
    // In the leader's log, but the replicas did not confirm it in time.
    [7, 'REQUEST_TIMED_OUT'],
    [8, 'BROKER_NOT_AVAILABLE'],
    [9, 'REPLICA_NOT_AVAILABLE'],
    [11, 'STALE_CONTROLLER_EPOCH'],
    [13, 'NETWORK_EXCEPTION'],
    [20, 'NOT_ENOUGH_REPLICAS_AFTER_APPEND'],
    [56, 'KAFKA_STORAGE_ERROR'],
    [57, 'LOG_DIR_NOT_FOUND'],
    [60, 'REASSIGNMENT_IN_PROGRESS'],
    [72, 'LISTENER_NOT_FOUND'],
    [74, 'FENCED_LEADER_EPOCH'],
    [75, 'UNKNOWN_LEADER_EPOCH'],
    [77, 'STALE_BROKER_EPOCH'],
    [80, 'PREFERRED_LEADER_NOT_AVAILABLE'],
    [83, 'ELIGIBLE_LEADERS_NOT_AVAILABLE'],
    [97, 'PRINCIPAL_DESERIALIZATION_FAILURE'],
    [100, 'UNKNOWN_TOPIC_ID'],
    [103, 'INCONSISTENT_TOPIC_ID'],
    [107, 'INELIGIBLE_REPLICA'],
    [108, 'NEW_LEADER_ELECTED'],
    [129, 'REBOOTSTRAP_REQUIRED'],
  ]),
  // Refused before anything was appended; the same may go well later.
  ...rows('retry', 'no', [
    // Checked before the append, unlike 20.
    [19, 'NOT_ENOUGH_REPLICAS'],
    [THROTTLING_QUOTA_EXCEEDED, 'THROTTLING_QUOTA_EXCEEDED'],
    // InitProducerId and CreateTopics only.
    [14, 'COORDINATOR_LOAD_IN_PROGRESS'],
    [15, 'COORDINATOR_NOT_AVAILABLE'],
    [16, 'NOT_COORDINATOR'],
    [TOPIC_ALREADY_EXISTS, 'TOPIC_ALREADY_EXISTS'],
    [NOT_CONTROLLER, 'NOT_CONTROLLER'],
    [51, 'CONCURRENT_TRANSACTIONS'],
    [55, 'OPERATION_NOT_ATTEMPTED'],
  ]),
  // Our producer identity is of no use any more.
  ...rows('renew', 'no', [
    [45, 'OUT_OF_ORDER_SEQUENCE_NUMBER'],
    [47, 'INVALID_PRODUCER_EPOCH'],
    [48, 'INVALID_TXN_STATE'],
    [49, 'INVALID_PRODUCER_ID_MAPPING'],
    [52, 'TRANSACTION_COORDINATOR_FENCED'],
    [59, 'UNKNOWN_PRODUCER_ID'],
    [90, 'PRODUCER_FENCED'],
    [105, 'TRANSACTIONAL_ID_NOT_FOUND'],
    [120, 'TRANSACTION_ABORTABLE'],
  ]),
  // The batch is at fault.
  ...rows('reject', 'no', [
    // The wire may be at fault too: the publisher sends it again before it says this.
    [CORRUPT_MESSAGE, 'CORRUPT_MESSAGE'],
    [10, 'MESSAGE_TOO_LARGE'],
    [18, 'RECORD_LIST_TOO_LARGE'],
    [32, 'INVALID_TIMESTAMP'],
    // A rule of the operator's about records or, when a topic is to be created, about topics.
    [44, 'POLICY_VIOLATION'],
    [87, 'INVALID_RECORD'],
  ]),
  // The topic is at fault: no row of it can be written until an operator has seen to it.
  ...rows('park', 'no', [
    [17, 'INVALID_TOPIC_EXCEPTION'],
    [29, 'TOPIC_AUTHORIZATION_FAILED'],
    [37, 'INVALID_PARTITIONS'],
    [38, 'INVALID_REPLICATION_FACTOR'],
    [39, 'INVALID_REPLICA_ASSIGNMENT'],
    [40, 'INVALID_CONFIG'],
    // A topic kept in the format of Kafka before 0.11: it has no headers and no idempotence.
    [43, 'UNSUPPORTED_FOR_MESSAGE_FORMAT'],
  ]),
  // Our rights, our configuration or our bytes, and the same for every topic.
  ...rows('halt', 'no', [
    [21, 'INVALID_REQUIRED_ACKS'],
    [CLUSTER_AUTHORIZATION_FAILED, 'CLUSTER_AUTHORIZATION_FAILED'],
    [33, 'UNSUPPORTED_SASL_MECHANISM'],
    [34, 'ILLEGAL_SASL_STATE'],
    [35, 'UNSUPPORTED_VERSION'],
    // The broker cannot read the request: no row may be failed for that.
    [42, 'INVALID_REQUEST'],
    [53, 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED'],
    [54, 'SECURITY_DISABLED'],
    [SASL_AUTHENTICATION_FAILED, 'SASL_AUTHENTICATION_FAILED'],
    [61, 'DELEGATION_TOKEN_AUTH_DISABLED'],
    [62, 'DELEGATION_TOKEN_NOT_FOUND'],
    [63, 'DELEGATION_TOKEN_OWNER_MISMATCH'],
    [64, 'DELEGATION_TOKEN_REQUEST_NOT_ALLOWED'],
    [65, 'DELEGATION_TOKEN_AUTHORIZATION_FAILED'],
    [66, 'DELEGATION_TOKEN_EXPIRED'],
    [67, 'INVALID_PRINCIPAL_TYPE'],
    // Compression is one setting for all topics.
    [76, 'UNSUPPORTED_COMPRESSION_TYPE'],
    [93, 'UNACCEPTABLE_CREDENTIAL'],
  ]),
  // Codes of requests that the relay never makes (fetching, groups, quorum, tiered storage, telemetry). A broker that
  // answers one of them is not understood: like a code that nobody knows.
  ...rows('reject', 'maybe', [
    [1, 'OFFSET_OUT_OF_RANGE'],
    [4, 'INVALID_FETCH_SIZE'],
    [12, 'OFFSET_METADATA_TOO_LARGE'],
    [22, 'ILLEGAL_GENERATION'],
    [23, 'INCONSISTENT_GROUP_PROTOCOL'],
    [24, 'INVALID_GROUP_ID'],
    [25, 'UNKNOWN_MEMBER_ID'],
    [26, 'INVALID_SESSION_TIMEOUT'],
    [27, 'REBALANCE_IN_PROGRESS'],
    [28, 'INVALID_COMMIT_OFFSET_SIZE'],
    [30, 'GROUP_AUTHORIZATION_FAILED'],
    [DUPLICATE_SEQUENCE_NUMBER, 'DUPLICATE_SEQUENCE_NUMBER'],
    [50, 'INVALID_TRANSACTION_TIMEOUT'],
    [68, 'NON_EMPTY_GROUP'],
    [69, 'GROUP_ID_NOT_FOUND'],
    [70, 'FETCH_SESSION_ID_NOT_FOUND'],
    [71, 'INVALID_FETCH_SESSION_EPOCH'],
    [73, 'TOPIC_DELETION_DISABLED'],
    [78, 'OFFSET_NOT_AVAILABLE'],
    [79, 'MEMBER_ID_REQUIRED'],
    [81, 'GROUP_MAX_SIZE_REACHED'],
    [82, 'FENCED_INSTANCE_ID'],
    [84, 'ELECTION_NOT_NEEDED'],
    [85, 'NO_REASSIGNMENT_IN_PROGRESS'],
    [86, 'GROUP_SUBSCRIBED_TO_TOPIC'],
    [88, 'UNSTABLE_OFFSET_COMMIT'],
    [91, 'RESOURCE_NOT_FOUND'],
    [92, 'DUPLICATE_RESOURCE'],
    [94, 'INCONSISTENT_VOTER_SET'],
    [95, 'INVALID_UPDATE_VERSION'],
    [96, 'FEATURE_UPDATE_FAILED'],
    [98, 'SNAPSHOT_NOT_FOUND'],
    [99, 'POSITION_OUT_OF_RANGE'],
    [101, 'DUPLICATE_BROKER_REGISTRATION'],
    [102, 'BROKER_ID_NOT_REGISTERED'],
    [104, 'INCONSISTENT_CLUSTER_ID'],
    [106, 'FETCH_SESSION_TOPIC_ID_ERROR'],
    [109, 'OFFSET_MOVED_TO_TIERED_STORAGE'],
    [110, 'FENCED_MEMBER_EPOCH'],
    [111, 'UNRELEASED_INSTANCE_ID'],
    [112, 'UNSUPPORTED_ASSIGNOR'],
    [113, 'STALE_MEMBER_EPOCH'],
    [114, 'MISMATCHED_ENDPOINT_TYPE'],
    [115, 'UNSUPPORTED_ENDPOINT_TYPE'],
    [116, 'UNKNOWN_CONTROLLER_ID'],
    [117, 'UNKNOWN_SUBSCRIPTION_ID'],
    [118, 'TELEMETRY_TOO_LARGE'],
    [119, 'INVALID_REGISTRATION'],
    [121, 'INVALID_RECORD_STATE'],
    [122, 'SHARE_SESSION_NOT_FOUND'],
    [123, 'INVALID_SHARE_SESSION_EPOCH'],
    [124, 'FENCED_STATE_EPOCH'],
    [125, 'INVALID_VOTER_KEY'],
    [126, 'DUPLICATE_VOTER'],
    [127, 'VOTER_NOT_FOUND'],
    [128, 'INVALID_REGULAR_EXPRESSION'],
    [130, 'STREAMS_INVALID_TOPOLOGY'],
    [131, 'STREAMS_INVALID_TOPOLOGY_EPOCH'],
    [132, 'STREAMS_TOPOLOGY_FENCED'],
    [133, 'SHARE_SESSION_LIMIT_REACHED'],
  ]),
]);
