import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import type { Settings } from '../../../src/model/settings.ts';
import { DEAD_LETTERS, type Plan } from './plan.ts';
import { MAX_ATTEMPTS } from './watch.ts';
import { TAKE_OVER_MS } from './leadership.ts';

const BUFFER_BYTES = 16 * 1024;

const base = settingsOf(
  complete(
    configSchema.parse({
      name: 'simulated',
      mysql: { host: 'db1', user: 'relay', password: '', database: 'app' },
      kafka: { brokers: ['broker1:9092'] },
      outboxes: [{ table: 'outbox' }],
    }),
  ),
);

/** Everything small and soon, so that little time and few rows make much happen. */
export function settingsFor({ mode, retire, sizes, onExhausted, hasDeadLetters }: Plan): Settings {
  return {
    ...base,
    outboxes: base.outboxes.map((outbox) => ({ ...outbox, retire })),
    relay: {
      ...base.relay,
      start: retire === 'keep' ? { kind: 'position', file: 'binlog.000001', offset: 4 } : { kind: 'pending' },
      flushMs: 10,
      flushRows: sizes.flushRows,
      maxInFlightBytes: sizes.poolBuffers * BUFFER_BYTES,
      takeOverMs: TAKE_OVER_MS,
      laneStallMs: 400,
      shutdownMs: 5_000,
    },
    kafka: { ...base.kafka, compression: 'none', batchBytes: BUFFER_BYTES, batchRecords: sizes.batchRecords },
    sweep: { mode, intervalMs: 50, batchRows: sizes.sweepRows },
    failures: {
      maxAttempts: MAX_ATTEMPTS,
      backOffMs: 50,
      backOffCapMs: 400,
      onExhausted,
      deadLetterTopic: hasDeadLetters ? DEAD_LETTERS : null,
    },
  };
}
