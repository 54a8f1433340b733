import type { RowDataPacket } from 'mysql2';
import type { Position } from '../../src/model/position.ts';

/** Leads an encrypted file and counts in its size, but not in positions. */
const ENCRYPTION_HEADER_BYTES = 512;

/** Empties the log; its words are other ones in MySQL 8.0 and in MariaDB. */
export async function resetLogs(sql: (text: string) => Promise<unknown>): Promise<void> {
  try {
    await sql('RESET BINARY LOGS AND GTIDS');
  } catch (error) {
    if ((error as { errno?: number }).errno !== SYNTAX) throw error;
    await sql('RESET MASTER');
  }
}

const SYNTAX = 1064;

/** Where the log ends now. The one statement for it that every version of MySQL and MariaDB takes. */
export async function logHead(sql: (text: string) => Promise<RowDataPacket[]>): Promise<Position> {
  const last = (await sql('SHOW BINARY LOGS')).at(-1);
  const header = last?.['Encrypted'] === 'Yes' ? ENCRYPTION_HEADER_BYTES : 0;
  return { file: String(last?.['Log_name']), offset: Number(last?.['File_size']) - header };
}
