import { RelayError, type Fault } from '../model/fault.ts';
import { requestFault } from './fault-table.ts';

/**
 * The client's side of a fault: whatever kafkajs, Node's sockets or TLS have thrown. `where` is the broker's address
 * or what was attempted. Total: what is not known is a bug of the client.
 */
export function clientFault(thrown: unknown, where: string): Fault {
  if (thrown instanceof RelayError) return thrown.fault;
  const error = innermost(thrown);
  if (error instanceof RelayError) return error.fault;
  if (!(error instanceof Error)) return bug(error, where, 'threw something that is no error');
  const code = (error as { code?: unknown }).code;

  // KafkaJSProtocolError and its kind carry the broker's number in `code`.
  if (typeof code === 'number') return { ...requestFault(code, where), cause: error };
  if (typeof code === 'string') {
    if (isTls(code)) return tls(error, where, code);
    const network = NETWORK.get(code);
    if (network !== undefined) return unreachable(error, where, `${network} (${code})`);
  }
  switch (error.name) {
    case 'KafkaJSSASLAuthenticationError':
      return authentication(where, 'the SASL exchange failed', error);
    case 'KafkaJSConnectionClosedError':
      return unreachable(error, where, PEER_CLOSED);
    case 'KafkaJSConnectionError':
      return unreachable(error, where, 'connection failed');
    case 'KafkaJSBrokerNotFound':
    case 'KafkaJSNoBrokerAvailableError':
    case 'KafkaJSMetadataNotLoaded':
    case 'KafkaJSTopicMetadataNotLoaded':
    case 'KafkaJSStaleTopicMetadataAssignment':
    case 'KafkaJSGroupCoordinatorNotFound':
      return unreachable(error, where, 'the broker is not in the metadata');
    case 'KafkaJSRequestTimeoutError':
    case 'KafkaJSTimeout':
      return timeout(where, 'no answer in time', error);
    case 'KafkaJSLockTimeout':
      return { ...timeout(where, 'the client waits for itself', error), disposition: 'renew' };
    case 'KafkaJSServerDoesNotSupportApiKey':
    case 'KafkaJSNotImplemented':
      return unsupported(where, 'the broker lacks a request that is needed', error);
    default:
      return bug(error, where, error.name);
  }
}

export function unreachable(cause: unknown, where: string, why: string): Fault {
  return { code: 'KAFKA_UNREACHABLE', disposition: 'retry', detail: `${where}: ${why}`, cause };
}

export function timeout(where: string, why: string, cause?: unknown): Fault {
  return { code: 'KAFKA_TIMEOUT', disposition: 'retry', detail: `${where}: ${why}`, cause };
}

export function authentication(where: string, why: string, cause?: unknown): Fault {
  return { code: 'KAFKA_AUTHENTICATION', disposition: 'halt', detail: `${where}: ${why}`, cause };
}

export function unsupported(where: string, why: string, cause?: unknown): Fault {
  return { code: 'KAFKA_UNSUPPORTED_VERSION', disposition: 'halt', detail: `${where}: ${why}`, cause };
}

/** Said by the peer, not by us: a broker does this to a request that it cannot accept at all. */
export function isPeerClosed(thrown: unknown): boolean {
  let error = innermost(thrown);
  while (error instanceof RelayError) error = innermost(error.fault.cause);
  if (!(error instanceof Error)) return false;
  return error.name === 'KafkaJSConnectionClosedError' || PEER_CODES.has((error as { code?: unknown }).code as string);
}

function tls(error: Error, where: string, code: string): Fault {
  // OpenSSL's and Node's own words about the certificate: they hold names, never key material.
  const why = error.message.replace(/^Connection error: /, '');
  return { code: 'KAFKA_TLS', disposition: 'halt', detail: `${where}: ${why} (${code})`, cause: error };
}

function bug(cause: unknown, where: string, what: string): Fault {
  return { code: 'KAFKA_CLIENT_BUG', disposition: 'renew', detail: `${where}: ${what} inside the client`, cause };
}

/** kafkajs wraps what its retrier gives up on, and calls the wrapper not retriable: the reason is the cause. */
function innermost(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth < 10 && error instanceof Error; depth++) {
    if (error.name === 'KafkaJSAggregateError') {
      const [first] = (error as Error & { errors?: unknown[] }).errors ?? [];
      if (first === undefined) return error;
      error = first;
    } else if (WRAPPERS.has(error.name) && error.cause instanceof Error) {
      error = error.cause;
    } else return error;
  }
  return error;
}

const WRAPPERS: ReadonlySet<string> = new Set([
  'KafkaJSNumberOfRetriesExceeded',
  'KafkaJSNonRetriableError',
  'KafkaJSError',
]);

const PEER_CLOSED = 'the broker closed the connection';
const PEER_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

const NETWORK: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', PEER_CLOSED],
  ['EPIPE', PEER_CLOSED],
  ['ECONNABORTED', 'connection aborted'],
  ['ETIMEDOUT', 'connection timed out'],
  ['EHOSTUNREACH', 'host unreachable'],
  ['EHOSTDOWN', 'host down'],
  ['ENETUNREACH', 'network unreachable'],
  ['ENETDOWN', 'network down'],
  ['ENOTFOUND', 'unknown host'],
  ['ENODATA', 'unknown host'],
  ['EAI_AGAIN', 'the resolver does not answer'],
  ['EAI_FAIL', 'the resolver does not answer'],
  ['EADDRNOTAVAIL', 'no local address left'],
  ['ENOBUFS', 'out of socket buffers'],
  ['EMFILE', 'out of file descriptors'],
  ['ENFILE', 'out of file descriptors'],
  ['ERR_STREAM_DESTROYED', 'connection closed'],
  ['ERR_SOCKET_CLOSED', 'connection closed'],
]);

function isTls(code: string): boolean {
  return code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_') || code === 'EPROTO' || VERIFY_ERRORS.has(code);
}

/** X509_verify_cert_error_string's codes as Node names them (nodejs.org/api/tls.html, "X509 certificate error codes"). */
const VERIFY_ERRORS: ReadonlySet<string> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_CRL',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'CERT_SIGNATURE_FAILURE',
  'CRL_SIGNATURE_FAILURE',
  'CERT_NOT_YET_VALID',
  'CERT_HAS_EXPIRED',
  'CRL_NOT_YET_VALID',
  'CRL_HAS_EXPIRED',
  'ERROR_IN_CERT_NOT_BEFORE_FIELD',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'ERROR_IN_CRL_LAST_UPDATE_FIELD',
  'ERROR_IN_CRL_NEXT_UPDATE_FIELD',
  'OUT_OF_MEM',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_CHAIN_TOO_LONG',
  'CERT_REVOKED',
  'INVALID_CA',
  'PATH_LENGTH_EXCEEDED',
  'INVALID_PURPOSE',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'HOSTNAME_MISMATCH',
]);
