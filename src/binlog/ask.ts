import type { Connection } from 'mysql2';

/** Queues one statement at once, behind what is queued there already. Rejects with the driver's error. */
export function ask(connection: Connection, sql: string, values: readonly unknown[] = []): Promise<unknown> {
  return new Promise((resolve, reject) => {
    connection.query(sql, [...values], (error, rows) => {
      if (error === null) resolve(rows);
      else reject(error);
    });
  });
}
