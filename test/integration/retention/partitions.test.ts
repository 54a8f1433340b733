import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { StoreBed } from '../store/store-bed.ts';

const PAGE = readFileSync(new URL('../../../docs/retention.md', import.meta.url), 'utf8').split('## Partitions')[1];
const DROP = /```sql\n(SET SESSION [^;]+;)\n(ALTER TABLE [^;]+;)/.exec(PAGE)!.slice(1);
const COUNT = /```sql\n(SELECT COUNT[^;]+;)/.exec(PAGE)![1];

test('S25 a partition is dropped as the page says: it gives up beside an open transaction, INSERTs wait no longer, then it goes', async () => {
  await using bed = await StoreBed.open();
  const [set, drop, count] = [...DROP, COUNT].map((sql) => sql.replace('app.outbox', 'outbox'));
  await bed.sql('ALTER TABLE outbox DROP INDEX idempotency_key, ADD UNIQUE KEY idempotency_key (idempotency_key, id)');
  await bed.sql(
    'ALTER TABLE outbox PARTITION BY RANGE (id) (PARTITION p_2026_10 VALUES LESS THAN (100), PARTITION rest VALUES LESS THAN MAXVALUE)',
  );
  await bed.insert(5);
  await bed.sql('ALTER TABLE outbox AUTO_INCREMENT = 100');
  const application = await bed.connect();
  await application.beginTransaction();
  await bed.insert(1, application);
  const [before] = await bed.sql(count);
  expect(Number(Object.values(before)[0])).toBe(5);
  await bed.sql("UPDATE outbox SET status = 'published' WHERE id < 100");

  const person = await bed.connect();
  await person.query(set);
  const dropping = person.query(drop).catch((error: unknown) => (error as { errno?: unknown }).errno);
  // It gives up while the transaction is still open: else neither it nor the INSERT behind it would come to an end.
  await bed.insert(1);
  expect(await dropping).toBe(1205);
  await application.commit();
  await person.query(drop);
  const ids = (await bed.sql('SELECT id FROM outbox ORDER BY id')).map(({ id }) => Number(id));
  expect(ids).toEqual([100, 101]);
});
