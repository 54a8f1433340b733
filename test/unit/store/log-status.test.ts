import { expect, test } from 'vitest';
import { readLogEnd, readServerFacts } from '../../../src/store/server.ts';
import type { Row, Session } from '../../../src/store/session.ts';

/** A server of any version: only some can be had for real. What the other statement does to it is an error 1064. */
function serverOf(version: string): { session: Session; asked: string[] } {
  const asked: string[] = [];
  const rows = (_: string, sql: string): Promise<Row[]> => {
    asked.push(sql);
    if (sql.startsWith('SELECT VERSION()')) return Promise.resolve([{ version }]);
    if (sql.startsWith('SHOW GLOBAL')) return Promise.resolve([{ Value: 'ON' }]);
    return Promise.resolve([{ File: 'binlog.000007', Position: '157' }]);
  };
  return { session: { rows, serverUuid: '3f0c' } as unknown as Session, asked };
}

test.each([
  ['8.0.20', 'mysql', 'SHOW MASTER STATUS'],
  ['8.1.0', 'mysql', 'SHOW MASTER STATUS'],
  ['8.2.0', 'mysql', 'SHOW BINARY LOG STATUS'],
  ['8.4.6-log', 'mysql', 'SHOW BINARY LOG STATUS'],
  ['9.7.4-2', 'mysql', 'SHOW BINARY LOG STATUS'],
  ['10.0.0', 'mysql', 'SHOW BINARY LOG STATUS'],
  ['10.11.14-MariaDB-0+deb12u2', 'mariadb', 'SHOW MASTER STATUS'],
  ['5.5.5-10.11.14-MariaDB-log', 'mariadb', 'SHOW MASTER STATUS'],
  ['11.8.3-MariaDB', 'mariadb', 'SHOW MASTER STATUS'],
])('J1 %s is %s and is asked %s', async (version, flavour, statement) => {
  const { session, asked } = serverOf(version);
  const facts = await readServerFacts(session);
  expect(facts).toMatchObject({ version, flavour });
  expect(await readLogEnd(session, facts)).toEqual({ file: 'binlog.000007', offset: 157 });
  expect(asked.at(-1)).toBe(statement);
});
