import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readRecords } from '../../stack/read-records.ts';
import { AdoptBed } from './adopt-bed.ts';

/** As docs/migrate.md has it under "From a polling relay"; names and the topic are the test's own. */
const PAGE = readFileSync(new URL('../../../docs/migrate.md', import.meta.url), 'utf8').split('## From a polling')[1];
const ENTRY = (parse(/```yaml\n([\s\S]*?)```/.exec(PAGE)![1]) as { outboxes: { columns: object }[] }).outboxes[0];
const UPDATE = /```sql\n([\s\S]*?)```/.exec(PAGE)![1].replace('app.outbox_events', 'outbox_events');

const TABLE = `CREATE TABLE outbox_events (id BIGINT AUTO_INCREMENT PRIMARY KEY, event_id CHAR(36) NOT NULL,
  entity_id VARCHAR(64) NOT NULL, payload JSON NOT NULL, status VARCHAR(10) NOT NULL DEFAULT 'NEW', sent_at DATETIME NULL)`;

test('S6 from a polling relay: what it had not sent goes first, what comes meanwhile follows, nothing of its history', async () => {
  await using bed = await AdoptBed.open('outbox_events', TABLE);
  const insert = async (entity: string, sent: boolean): Promise<string> => {
    const id = randomUUID();
    const text = `INSERT INTO outbox_events (event_id, entity_id, payload, sent_at) VALUES (?, ?, '{"n": 1}', ${sent ? 'NOW()' : 'NULL'})`;
    await bed.sql(text, [id, entity]);
    return id;
  };
  const entry = { ...ENTRY, table: 'outbox_events', topic: { fixed: bed.topic } };
  await insert('a', true);
  await insert('b', true);
  const unsent = [await insert('a', false), await insert('a', false), await insert('b', false)];

  // The poller is stopped.
  await bed.adopt([], entry);
  const meanwhile = [await insert('a', false), await insert('b', false)];
  await bed.sql(UPDATE);
  const { code, stderr } = await bed.cli(['resync', '--yes'], entry);
  expect(code, stderr).toBe(0);
  const later = await insert('a', false);
  await bed.deliver(entry);

  const records = await readRecords(bed.servers.kafka, [bed.topic]);
  const of = (entity: string) =>
    records.filter(({ key }) => key?.toString() === entity).map(({ headers }) => String(headers['id']));
  expect(of('a')).toEqual([unsent[0], unsent[1], meanwhile[0], later]);
  expect(of('b')).toEqual([unsent[2], meanwhile[1]]);
  // The poller's own column is as it was.
  expect(await bed.sql("SELECT COUNT(*) AS n FROM outbox_events WHERE status <> 'NEW'")).toEqual([{ n: '0' }]);
});
