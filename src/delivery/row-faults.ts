import type { FaultCode } from '../model/fault.ts';

/**
 * Whether a refusal is about the row itself and will be the same at every attempt: the row fails at once. All other
 * refusals count as one attempt of the row's; they may be the wire's, or of a kind that nobody knows.
 */
export function isFinal(code: FaultCode): boolean {
  return FINAL.has(code);
}

const FINAL: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'ROW_ENCODING',
  'ROW_NO_TOPIC',
  'KAFKA_MESSAGE_TOO_LARGE',
  'KAFKA_RECORD_LIST_TOO_LARGE',
  // The request is larger than the broker reads (`socket.request.max.bytes`).
  'KAFKA_REQUEST_TOO_LARGE',
  'KAFKA_INVALID_TIMESTAMP',
  'KAFKA_INVALID_RECORD',
]);
