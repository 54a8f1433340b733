import { expect, test } from 'vitest';
import type { RowDataPacket } from 'mysql2/promise';
import { expectedRows } from '../../stack/expected-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

const PAYLOADS = [
  '{"order": 17, "total": 12.50, "note": "größer als 5 €, 🙂", "lines": [{"sku": "a\\"b", "n": 3}], "empty": {}}',
  '[1.0, -0.0, 1e20, 18446744073709551615, true, null, ""]',
  'null', // JSON null, which is no tombstone
  null,
  JSON.stringify({ text: 'x'.repeat(70_000) }),
];
const HEADERS = [
  '{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "süd"}',
  null,
  '{"retries": 3, "none": null, "nested": {"a": [1]}}',
];
const AGGREGATES = ['order-42', 'café€', '100:48069', 'ORDER-42', ' ', 'ключ'];
const EVENT_TYPES = ['created', 'paid'];

test.for(['none', 'gzip', 'zstd'])(
  'three outboxes, each with its topic rule and retirement, %s',
  async (compression) => {
    await using bed = await RelayBed.open({
      outboxes: [
        { table: 'marked', retire: 'mark' },
        { table: 'deleted', retire: 'delete', topic: (fullName) => ({ fixed: fullName('fixed') }) },
        { table: 'kept', retire: 'keep', topic: (fullName) => ({ template: fullName('events.{event_type}') }) },
      ],
      topics: { orders: 3, invoices: 1, fixed: 2, 'events.created': 4, 'events.paid': 1 },
      config: { kafka: { compression } },
    });
    const first = await bed.start();
    expect((await first.kill('SIGTERM')).code).toBe(0);
    await fill(bed, 0, 300);
    const { pool, topic } = bed.servers;
    const deleted = await expectedRows(pool, { table: 'deleted', topic: topic('fixed') });

    const relay = await bed.start();
    await bed.retired('marked');
    await bed.retired('deleted');
    await bed.expectDelivered({ rows: deleted, topics: [topic('fixed')] });
    await fill(bed, 300, 20); // and while it runs
    await bed.retired('marked');
    await bed.retired('deleted');

    expect(await bed.expectDelivered({ table: 'marked', topics: ['orders', 'invoices'].map(topic) })).toMatchObject({
      committed: 320,
      delivered: 320,
      duplicates: 0,
    });
    const [published] = await bed.sql(
      "SELECT COUNT(*) AS those FROM marked WHERE status = 'published' AND published_at >= created_at AND attempts = 0",
    );
    expect(Number(published['those'])).toBe(320);

    expect(await bed.count('deleted')).toBe(0);
    expect(await bed.records([topic('fixed')])).toBe(320);

    const [kept] = await bed.sql(
      "SELECT COUNT(*) AS those FROM kept WHERE status = 'pending' AND published_at IS NULL",
    );
    expect(Number(kept['those'])).toBe(320);
    const keptTopics = EVENT_TYPES.map((type) => topic(`events.${type}`));
    for (const [i, type] of EVENT_TYPES.entries()) {
      const rows = await expectedRows(pool, { table: 'kept', topic: keptTopics[i], where: `event_type = '${type}'` });
      await bed.expectDelivered({ rows, topics: [keptTopics[i]] });
    }
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);

/** Rows of every kind in all three tables, several to a transaction. */
async function fill(bed: RelayBed, from: number, count: number): Promise<void> {
  const { pool, topic } = bed.servers;
  const connection = await pool.getConnection();
  try {
    for (let i = from; i < from + count; i++) {
      if (i % 7 === 0) await connection.query(i === from ? 'BEGIN' : 'COMMIT; BEGIN');
      const own = (table: string): (string | null)[] => {
        const at = i + table.length;
        const of = topic(i % 5 === 0 ? 'invoices' : 'orders');
        const eventType = table === 'kept' ? EVENT_TYPES[at % 2] : [...EVENT_TYPES, null][at % 3];
        return [of, AGGREGATES[at % 6], eventType, PAYLOADS[i % 50 === 0 ? 4 : at % 4], HEADERS[at % 3]];
      };
      for (const table of ['marked', 'deleted', 'kept']) {
        const columns = 'topic, aggregate_id, event_type, payload, headers';
        await connection.query(`INSERT INTO ${table} (${columns}) VALUES (?)`, [own(table)]);
      }
    }
    await connection.query<RowDataPacket[]>('COMMIT');
  } finally {
    connection.release();
  }
}
