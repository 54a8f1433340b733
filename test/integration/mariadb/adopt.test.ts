import { expect, test } from 'vitest';
import { AdoptBed } from '../adopt/adopt-bed.ts';

test('S6 a table of Debezium on a MariaDB: history stays, what Debezium had not sent and what is new goes out', async () => {
  await using bed = await AdoptBed.open();
  expect(String((await bed.sql('SELECT VERSION() AS version'))[0]['version'])).toContain('MariaDB');
  for (let i = 0; i < 5; i++) await bed.insert();
  const { file, offset } = await bed.head();
  const unsent: string[] = [];
  for (let i = 0; i < 10; i++) unsent.push(await bed.insert());
  const path = bed.offsetFile({ file, pos: offset, ts_sec: 1 });
  const report = await bed.adopt(['--from-debezium-offset', path]);
  expect(report).toMatchObject({ unsent: { rows: 10, gone: 0 } });
  expect(report.statements).toHaveLength(3);
  const news = [await bed.insert(), await bed.insert()];
  expect(await bed.deliver(report.config)).toEqual([...unsent, ...news]);
  expect(await bed.adopt([], report.config)).toMatchObject({ statements: [], start: null });
});
