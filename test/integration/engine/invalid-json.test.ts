import { expect, test } from 'vitest';
import { readRecords } from '../../stack/read-records.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

test('D6 text that is no JSON passes through as it is, between good rows of other aggregates', async () => {
  await using bed = await RelayBed.open();
  const topic = bed.servers.topic('orders');
  await bed.sql('ALTER TABLE outbox MODIFY payload LONGTEXT');
  await bed.start();
  await bed.sql('INSERT INTO outbox (topic, aggregate_id, payload) VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?)', [
    ...[topic, 'a', '{"good": 1}'],
    ...[topic, 'b', '{bad'],
    ...[topic, 'c', '{"good": 2}'],
  ]);
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 3, delivered: 3, altered: 0 });
  const values = (await readRecords(bed.servers.kafka, [topic])).map(({ value }) => String(value));
  expect(values.sort()).toEqual(['{"good": 1}', '{"good": 2}', '{bad']);
});
