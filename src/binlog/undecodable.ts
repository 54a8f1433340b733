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

/**
 * Why the transaction in which `error` was thrown is handed on without rows; null when the error ends the stream.
 * `tolerant`: events that cannot be read have been tried before.
 */
export function whyUndecodable(error: unknown, tolerant: boolean, detail: string): Fault | null {
  if (error instanceof UndecodableError) return error.fault;
  if (!tolerant || error instanceof RelayError) return null;
  return { code: 'BINLOG_DECODE', disposition: 'halt', detail, cause: error };
}
