import type { Fault } from '../model/fault.ts';
import type { SealedBatch } from '../model/publisher.ts';
import type { Limits } from './limits.ts';
import { within } from './within.ts';

/** A limit that is not quite new is asked for once more, so long, before something is refused by it. */
const LIMIT_WAIT_MS = 200;

/** Why a batch need not be sent: its topic takes none so large, as far as is known. */
export async function overTopicLimit(batch: SealedBatch, limits: Limits): Promise<Fault | null> {
  const { topic, partition, bytes } = batch;
  if (bytes.length <= (limits.batchBytes(topic) ?? Infinity)) return null;
  if (!limits.isFresh(topic)) {
    await within(LIMIT_WAIT_MS, limits.ask(topic), () => new Error('late')).catch(() => undefined);
  }
  const limitBytes = limits.batchBytes(topic);
  if (limitBytes === null || bytes.length <= limitBytes) return null;
  return {
    code: 'KAFKA_MESSAGE_TOO_LARGE',
    disposition: 'reject',
    detail: `${topic}-${partition}: a batch of ${bytes.length} bytes, the topic takes ${limitBytes}`,
  };
}

/** `limitBytes` null: the broker did not say, but did not read it either. */
export function requestTooLarge(where: string, requestBytes: number, limitBytes: number | null): Fault {
  const why = limitBytes === null ? 'the broker closes the connection on it' : `the broker reads ${limitBytes} at most`;
  return {
    code: 'KAFKA_REQUEST_TOO_LARGE',
    disposition: 'reject',
    detail: `${where}: a request of ${requestBytes} bytes, ${why} (socket.request.max.bytes)`,
  };
}
