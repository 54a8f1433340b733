import { RelayError, type Fault, type FaultCode } from '../model/fault.ts';

/**
 * About one transaction alone: it holds, or may hold, outbox rows that the tail cannot give. It is handed on without
 * rows, and the stream goes on. (`halt`: where nobody sweeps, nothing else is left.)
 */
export class UndecodableError extends RelayError {
  constructor(code: FaultCode, detail: string, cause?: unknown) {
    super({ code, disposition: 'halt', detail, cause });
  }
}

/** What a server writes and the tail does not read, and what keeps it out of the log. */
export const Unread = {
  NoKey: 'an outbox row comes without its primary key; binlog_row_image must be FULL where the key is a default',
  Text: 'a statement about an outbox table is in the log as text; binlog_format must be ROW where outbox rows are written',
  Partial:
    'an outbox row was changed in part by the transaction that inserted it; ' +
    "binlog_row_value_options must be '' where outbox rows are written",
  Savepoint: 'outbox rows are rolled back to a savepoint that is not in the log; report this',
  Type: 'an event of an unknown type is among outbox rows; report this',
  Xa: 'an XA transaction with outbox rows, or one of which nothing is known, is committed here; write outbox rows without XA',
} as const;

/** `at`: where the event is. */
export function unread(at: string, what: (typeof Unread)[keyof typeof Unread]): Fault {
  return { code: 'BINLOG_UNSUPPORTED', disposition: 'halt', detail: `${at}: ${what}` };
}

export function incident(at: string): Fault {
  return { code: 'BINLOG_INCIDENT', disposition: 'halt', detail: `${at}: the server says that it lost events here` };
}

/** `at`: where the transaction begins. */
export function tooLarge(at: string, maxBytes: number): Fault {
  const detail =
    `the transaction at ${at} holds more than ${maxBytes} bytes of outbox rows ` +
    'and changes rows that it inserted: relay.maxTransactionBytes must be larger than it is';
  return { code: 'BINLOG_TRANSACTION_TOO_LARGE', disposition: 'halt', detail };
}

/**
 * Why the transaction in which `error` was thrown is handed on without rows. Throws the error when it ends the stream.
 * `tolerant`: events that cannot be read have been tried before.
 */
export function whyUndecodable(error: unknown, tolerant: boolean, detail: string): Fault {
  if (error instanceof UndecodableError) return error.fault;
  if (!tolerant || error instanceof RelayError) throw error;
  return { code: 'BINLOG_DECODE', disposition: 'halt', detail, cause: error };
}
