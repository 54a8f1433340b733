import { expect, test } from 'vitest';
import { RelayBed } from '../../stack/relay-bed.ts';

test('A1 S34 rows that stay pending are told of: one that REPLACE made out of another, and one that is due later', async () => {
  await using bed = await RelayBed.open();
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  const insert = (columns: string, values: string): string =>
    `INTO outbox (topic, aggregate_id, payload${columns}) VALUES ('${topic}', 'a', '{}'${values})`;
  const key = ", X'000102030405060708090a0b0c0d0e0f'";
  await bed.sql(`INSERT ${insert(', idempotency_key', key)}`);
  await bed.retired();
  expect(relay.lines().some(({ event }) => event === 'rows-left-pending')).toBe(false);

  await bed.sql(`REPLACE ${insert(', idempotency_key', key)}`);
  await relay.waitFor('rows-left-pending', { fields: { why: 'replaced', rows: 1 } });

  await bed.sql(`INSERT ${insert(', available_at', ', UTC_TIMESTAMP(6) + INTERVAL 1 HOUR')}`);
  await relay.waitFor('rows-left-pending', { fields: { why: 'delayed', rows: 1 } });
  expect(await bed.count('outbox', "status = 'pending'")).toBe(2);
});
