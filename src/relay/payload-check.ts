import { isUtf8 } from 'node:buffer';
import { fault } from '../model/fault.ts';
import { Form, type OutboxRow } from '../model/row.ts';

/** Payloads that must be JSON: a row whose text is none fails instead of going out as it is (`validateJson`). */
export class PayloadCheck {
  /** By outbox. */
  readonly #validates: readonly boolean[];

  constructor(validates: readonly boolean[]) {
    this.#validates = validates;
  }

  /** Throws a `RelayError` (ROW_ENCODING), free of what is in the payload. */
  check({ outbox, value }: OutboxRow): void {
    // A JSON column cannot hold anything else.
    if (!this.#validates[outbox] || value.form !== Form.Text) return;
    const bytes = value.buffer.subarray(value.start, value.end);
    if (!isUtf8(bytes) || !isJson(bytes.toString())) {
      throw fault('ROW_ENCODING', 'reject', 'the payload is no JSON text, and validateJson is set for its outbox');
    }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
