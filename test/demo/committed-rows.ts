import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { CommittedRow } from './audit.ts';

/** Every row of the outbox by its id, with the bytes that SELECT shows. */
export async function committedRows(connection: Connection): Promise<Map<string, CommittedRow>> {
  await connection.query("SET time_zone = '+00:00'");
  const [rows] = await connection.query<RowDataPacket[]>(
    `SELECT BIN_TO_UUID(idempotency_key) AS id, topic, CAST(aggregate_id AS BINARY) AS aggregate, event_type,
       CAST(CAST(payload AS CHAR) AS BINARY) AS payload, CAST(headers AS CHAR) AS headers,
       FLOOR(UNIX_TIMESTAMP(created_at) * 1000) AS created_ms, status = 'published' AS published
     FROM outbox ORDER BY id`,
  );
  return new Map(
    rows.map((row) => {
      const id = String(row['id']);
      const own = JSON.parse(String(row['headers'])) as Record<string, string>;
      const committed: CommittedRow = {
        id,
        topic: String(row['topic']),
        key: row['aggregate'] as Buffer,
        value: row['payload'] as Buffer | null,
        headers: { id, 'event-type': String(row['event_type']), ...own },
        timestampMs: Number(row['created_ms']),
        isPublished: Number(row['published']) === 1,
      };
      return [id, committed];
    }),
  );
}
