import type { OutboxColumns, OutboxSettings } from './settings.ts';

/** Column names of an outbox table as shipped (`migrations/outbox`). */
export const SHIPPED_COLUMNS = {
  id: 'id',
  aggregateId: 'aggregate_id',
  eventType: 'event_type',
  payload: 'payload',
  headers: 'headers',
  idempotencyKey: 'idempotency_key',
  status: 'status',
  availableAt: 'available_at',
  claimedAt: 'claimed_at',
  claimedBy: 'claimed_by',
  attempts: 'attempts',
  lastError: 'last_error',
  createdAt: 'created_at',
  publishedAt: 'published_at',
} as const satisfies OutboxColumns;

export const SHIPPED_TOPIC_COLUMN = 'topic';

/** Whether the table that the settings describe can be the shipped one. */
export function isShippedShape({ columns, topic }: OutboxSettings): boolean {
  const names = Object.entries(SHIPPED_COLUMNS) as [keyof OutboxColumns, string][];
  const sameTopic = topic.kind !== 'column' || topic.column === SHIPPED_TOPIC_COLUMN;
  return sameTopic && names.every(([key, name]) => columns[key] === name);
}
