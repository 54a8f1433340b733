import type { RowDataPacket } from 'mysql2';
import type { Position } from '../../src/model/position.ts';

/** Where the log ends now. The one statement for it that every version of MySQL and MariaDB takes. */
export async function logHead(sql: (text: string) => Promise<RowDataPacket[]>): Promise<Position> {
  const last = (await sql('SHOW BINARY LOGS')).at(-1);
  return { file: String(last?.['Log_name']), offset: Number(last?.['File_size']) };
}
