import type { Connection, RowDataPacket } from 'mysql2/promise';

/** Characters of a set by their bytes (as one number) with their UTF-8 as the server converts them. */
export type Characters = ReadonlyMap<number, Buffer>;

export const SINGLE_BYTE_SETS = [
  ...['latin1', 'latin2', 'latin5', 'latin7', 'greek', 'hebrew', 'cp1250', 'cp1251', 'cp1256', 'cp1257', 'cp850'],
  ...['cp852', 'cp866', 'koi8r', 'koi8u', 'macroman', 'macce', 'keybcs2', 'armscii8', 'geostd8', 'swe7', 'hp8'],
  ...['dec8', 'tis620'],
];

/** All 256 bytes of a set of one byte a character, where undefined ones become a question mark. */
export async function singleBytes(connection: Connection, set: string): Promise<Characters> {
  const columns = Array.from({ length: 256 }, (_, byte) => `CONVERT(_${set} X'${hex(byte, 1)}' USING utf8mb4)`);
  const sql = `SELECT ${columns.map((column) => `CAST(${column} AS BINARY)`).join(', ')}`;
  const [rows] = await connection.query<RowDataPacket[][]>({ sql, rowsAsArray: true });
  return new Map((rows as unknown as Buffer[][])[0].entries());
}

/**
 * The well-formed characters of a set that are of `bytes` bytes; of four, the codes of `codes`. The server leaves none
 * out: what it does not define becomes a question mark.
 */
export async function characters(
  connection: Connection,
  set: string,
  bytes: 1 | 2 | 3 | 4,
  codes: readonly number[] = bytes === 3
    ? range(0x8f_0000, 0x8f_ffff)
    : range(0x80 * 0x100 ** (bytes - 1), 0x100 ** bytes - 1),
): Promise<Characters> {
  const found = new Map<number, Buffer>();
  for (let at = 0; at < codes.length; at += PIECE) {
    const list = codes.slice(at, at + PIECE).map((code) => [code, hex(code, bytes)]);
    const [rows] = await connection.query<RowDataPacket[][]>({
      sql: `SELECT code, CAST(CONVERT(v USING utf8mb4) AS BINARY)
            FROM (SELECT code, CONVERT(UNHEX(h) USING ${set}) AS v
                  FROM JSON_TABLE(?, '$[*]' COLUMNS (code BIGINT PATH '$[0]', h VARCHAR(8) PATH '$[1]')) AS given) AS t
            WHERE v IS NOT NULL AND CHAR_LENGTH(v) = 1 AND HEX(v) = HEX(UNHEX(LPAD(HEX(code), ?, '0'))) ORDER BY code`,
      values: [JSON.stringify(list), 2 * bytes],
      rowsAsArray: true,
    });
    for (const [code, text] of rows as unknown as [number, Buffer | null][]) {
      if (text !== null) found.set(code, text);
    }
  }
  return found;
}

const PIECE = 10_000;

export function hex(code: number, bytes: number): string {
  return code.toString(16).padStart(2 * bytes, '0');
}

export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}
