import { expect, test } from 'vitest';
import { ByteIds } from '../../../src/model/row-ids.ts';
import { OutboxRetirement } from '../../../src/store/outbox-retirement.ts';
import { RowLocks } from '../../../src/store/row-locks.ts';
import { Session } from '../../../src/store/session.ts';
import { silent, StoreBed } from './store-bed.ts';

const NAMED = 700;
/** More than the optimizer has memory for in one statement, where keys may be as long as they can be. */
const NAMED_LONG = 3_000;

const uuid = (n: string) => `INSERT(LEFT(SHA2(${n}, 256), 32), 9, 0, '-')`;
/** D1: the log leaves trailing zeros out, the statement must not. */
const zeros = (n: string) => `CONCAT(UNHEX(LPAD(HEX(${n}), 8, '0')), UNHEX(REPEAT('00', 12)))`;

const TYPES: readonly (readonly [type: string, id: (n: string) => string, named?: number])[] = [
  ['BINARY(16)', zeros],
  ['BINARY(16)', (n) => `UNHEX(LEFT(SHA2(${n}, 256), 32))`],
  ['VARBINARY(40)', (n) => `CONCAT(UNHEX(LEFT(SHA2(${n}, 256), 32)), X'00')`],
  ['CHAR(36)', uuid],
  ['CHAR(36) CHARACTER SET ascii', uuid],
  ['VARCHAR(100) CHARACTER SET latin1', (n) => `CONCAT('é€', ${n})`],
  ['VARCHAR(60) CHARACTER SET utf8mb3', (n) => `CONCAT('ä-€-', ${n})`],
  ['VARCHAR(60) COLLATE utf8mb4_bin', (n) => `CONCAT('😀''\\\\', ${n})`],
  ['VARCHAR(60) COLLATE utf8mb4_0900_ai_ci', (n) => `CONCAT('ÄB', ${n})`],
  ['VARCHAR(50) CHARACTER SET utf16', (n) => `CONCAT('é😀', ${n})`],
  ['VARCHAR(50) CHARACTER SET sjis', (n) => `CONCAT('ソ', ${n})`],
  ['VARCHAR(768) COLLATE utf8mb4_bin', uuid, NAMED_LONG],
];

const CASES = TYPES.flatMap(([type, id, named = NAMED]) => {
  return (['mark', 'delete'] as const).map((retire) => ({ type, id, retire, named }));
});

test.for(CASES)(
  'D1 $named rows whose primary key is $type: $retire retires those named and no other, by the index',
  async ({ type, id, retire, named }) => {
    await using bed = await StoreBed.open();
    // So many that a plan without the index would be a scan.
    const all = 2 * named + 100;
    const settings = bed.settings({ retire });
    const binary = /BINARY/.test(type);
    await bed.sql(`CREATE TABLE keyed (id ${type} PRIMARY KEY, n INT, status VARCHAR(20) DEFAULT 'pending',
                   published_at DATETIME(6))`);
    await bed.sql(`INSERT INTO keyed (id, n) WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE
                   n < ${all}) SELECT /*+ SET_VAR(cte_max_recursion_depth = 10000) */ ${id('n')}, n FROM s`);
    const shown = binary ? 'HEX(id)' : 'HEX(CONVERT(id USING utf8mb4))';
    const rows = await bed.sql(`SELECT LOWER(${shown}) AS id FROM keyed WHERE n <= ${named} ORDER BY n`);
    const ids = rows.map((row) => String(row['id']));
    const session = await Session.open(settings.mysql, silent);
    try {
      const plans: unknown[] = [];
      const retirement = new OutboxRetirement({ ...settings.outboxes[0], table: 'keyed' });
      const locks = new RowLocks({ ...settings.outboxes[0], table: 'keyed' });
      const watched = explaining(session, plans);

      const application = await bed.connect();
      await application.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
      await application.beginTransaction();
      await application.query('UPDATE keyed SET n = n WHERE n = 3');
      await session.change('testing', 'START TRANSACTION');
      const looked = await locks.take(watched, ByteIds.fromHex([...ids, '6e6f6e65']));
      await session.change('testing', 'ROLLBACK');
      expect([...looked.held]).toEqual([ids[2]]);
      expect([...looked.free].sort()).toEqual([...ids.filter((_, n) => n !== 2), '6e6f6e65'].sort());
      await application.rollback();

      // One that is not there: what comes after "fewer than named" is looked at too.
      await retirement.retire(watched, ByteIds.fromHex([...ids, '6e6f6e65']));
      const left = await bed.sql("SELECT n FROM keyed WHERE status = 'pending' ORDER BY n");
      expect(left.map((row) => Number(row['n']))).toEqual(Array.from({ length: all - named }, (_, n) => named + 1 + n));
      const [{ there }] = await bed.sql('SELECT COUNT(*) AS there FROM keyed');
      expect(Number(there)).toBe(retire === 'mark' ? all : all - named);
      expect(plans.length).toBeGreaterThanOrEqual(3);
      for (const plan of plans) expect(plan).toMatchObject({ type: 'range', key: 'PRIMARY' });
    } finally {
      session.destroy();
    }
  },
);

/** The session, with every statement that names many rows explained before it is run. */
function explaining(session: Session, plans: unknown[]): Session {
  const explain = async (sql: string): Promise<void> => {
    if (!sql.includes(' IN (')) return;
    const [plan] = await session.rows('explaining', `EXPLAIN FORMAT=TRADITIONAL ${sql}`);
    plans.push({ type: plan['type'], key: plan['key'], rows: Number(plan['rows']) });
  };
  const explained = {
    change: async (doing: string, sql: string) => {
      await explain(sql);
      return session.change(doing, sql);
    },
    rows: async (doing: string, sql: string, values?: unknown[]) => {
      await explain(sql);
      return session.rows(doing, sql, values);
    },
  };
  return explained as unknown as Session;
}
