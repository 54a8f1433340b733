import type { Session } from './session.ts';

/** Leads an encrypted file and counts in its size, but not in positions. */
const ENCRYPTION_HEADER_BYTES = 512;

export interface BinlogFile {
  readonly name: string;
  readonly bytes: number;
  /** Where it ends. */
  readonly end: number;
}

/** The binlogs that the server has, oldest first. It opens every one to tell its size. */
export async function readBinlogFiles(session: Session): Promise<BinlogFile[]> {
  const rows = await session.rows('asking for the binlog files', 'SHOW BINARY LOGS');
  return rows.map((row) => {
    const bytes = Number(row['File_size']);
    const header = row['Encrypted'] === 'Yes' ? ENCRYPTION_HEADER_BYTES : 0;
    return { name: String(row['Log_name']), bytes, end: bytes - header };
  });
}
