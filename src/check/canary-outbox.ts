import type { OutboxSettings } from '../model/settings.ts';

/** The table of the canary as an outbox: the columns of migration 0007, and no status. */
export const CANARY_OUTBOX: Omit<OutboxSettings, 'schema' | 'table'> = {
  columns: {
    id: 'id',
    aggregateId: 'aggregate_id',
    eventType: null,
    payload: 'payload',
    headers: null,
    idempotencyKey: 'idempotency_key',
    status: null,
    availableAt: null,
    claimedAt: null,
    claimedBy: null,
    attempts: null,
    lastError: null,
    createdAt: null,
    publishedAt: null,
  },
  topic: { kind: 'fixed', topic: 'canary' },
  retire: 'keep',
  validateJson: false,
  retention: null,
  limits: null,
};
