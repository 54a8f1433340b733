import { describe, expect, test } from 'vitest';
import { Grants } from '../../../src/check/grants.ts';
import { neededRights, trialOf } from '../../../src/check/needed-rights.ts';
import { rightsFindings } from '../../../src/check/rights.ts';
import { DENIED, goodServer, settings, told } from './facts.ts';

describe('SHOW GRANTS', () => {
  test('levels, columns, wildcards', () => {
    const grants = Grants.parse([
      'GRANT PROCESS, REPLICATION SLAVE ON *.* TO `relay`@`%`',
      'GRANT SESSION_VARIABLES_ADMIN,BINLOG_ADMIN ON *.* TO `relay`@`%`',
      'GRANT SELECT, SELECT (`a`, `id`), UPDATE (`a`) ON `app`.`outbox` TO `relay`@`%`',
      'GRANT INSERT ON `shop\\_1`.* TO `relay`@`%`',
      'GRANT DELETE ON `tenant_%`.* TO `relay`@`%`',
      'GRANT ALL PRIVILEGES ON `o``dd`.* TO `relay`@`%`',
      'GRANT EXECUTE ON PROCEDURE `app`.`delete` TO `relay`@`%`',
      'GRANT `reader`@`%`,`writer`@`10.%` TO `relay`@`%`',
    ]);
    expect(['PROCESS', 'REPLICATION SLAVE', 'BINLOG_ADMIN', 'SUPER'].map((p) => grants.hasGlobal(p))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(grants.hasForTable('SELECT', 'app', 'outbox')).toBe(true);
    expect(grants.hasForTable('UPDATE', 'app', 'outbox')).toBe(false); // some columns: to be tried
    expect(grants.hasForTable('SELECT', 'app', 'other')).toBe(false);
    expect(grants.hasForTable('INSERT', 'shop_1', 'x')).toBe(true);
    expect(grants.hasForTable('INSERT', 'shopx1', 'x')).toBe(false);
    expect(grants.hasForTable('DELETE', 'tenant_42', 'x')).toBe(true);
    expect(grants.hasForTable('DELETE', 'o`dd', 'x')).toBe(true);
    expect(grants.hasForTable('PROCESS', 'app', 'outbox')).toBe(true);
    expect(grants.roles).toEqual(["'reader'@'%'", "'writer'@'10.%'"]);
  });

  test('all privileges, less what a partial revoke takes back', () => {
    const grants = Grants.parse([
      'GRANT ALL PRIVILEGES ON *.* TO `relay`@`%` WITH GRANT OPTION',
      'REVOKE UPDATE ON `app`.* FROM `relay`@`%`',
    ]);
    expect(grants.hasForTable('SELECT', 'app', 'outbox')).toBe(true);
    expect(grants.hasForTable('UPDATE', 'app', 'outbox')).toBe(false);
    expect(grants.hasForTable('UPDATE', 'shop', 'outbox')).toBe(true);
  });

  test('what MariaDB writes', () => {
    const grants = Grants.parse([
      "GRANT BINLOG MONITOR ON *.* TO `relay`@`%` IDENTIFIED BY PASSWORD '*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'",
      'GRANT `reader` TO `relay`@`%`',
      'GRANT ALL PRIVILEGES ON `app`.* TO `relay`@`%`',
    ]);
    expect(grants.hasGlobal('BINLOG MONITOR')).toBe(true);
    expect(grants.hasForTable('DELETE', 'app', 'outbox')).toBe(true);
    expect(grants.roles).toEqual(["'reader'@'%'"]);
  });
});

describe('rights', () => {
  test('what each way to retire needs', () => {
    const of = (outbox: object) =>
      neededRights(settings({ outboxes: [{ table: 'app.outbox', ...outbox }] }))
        .filter(({ table }) => !table.startsWith('cdc_relay_'))
        .map(({ table, privileges, isVital }) => `${table}: ${privileges.join(', ')}${isVital ? '' : ' (not vital)'}`);
    const select = 'outbox: SELECT';
    expect(of({ retire: 'keep' })).toEqual([select]);
    expect(of({ retire: 'delete' })).toEqual([select, 'outbox: UPDATE', 'outbox: DELETE']);
    expect(of({ retire: 'mark' })).toEqual([select, 'outbox: UPDATE', 'outbox: DELETE (not vital)']);
    const retention = { afterMs: 1_000, archive: 'old' };
    expect(of({ retention })).toEqual([select, 'outbox: UPDATE', 'outbox: DELETE', 'old: SELECT, INSERT']);
  });

  test('I6 each one that is missing has its GRANT and what is lost', () => {
    const needed = neededRights(settings()).filter(({ table }) => table === 'outbox');
    const tables = needed.map((each) => ({ needed: each, missing: each.privileges }));
    const facts = goodServer({ log: DENIED, rowImage: DENIED, longTransactions: DENIED });
    const found = rightsFindings(facts, { tables, mayDump: false, idleRoles: ["'reader'@'%'"] });
    expect(told(found)).toEqual([
      'error table-rights: relay@% lacks SELECT on app.outbox',
      'error table-rights: relay@% lacks UPDATE on app.outbox',
      'warning table-rights: relay@% lacks DELETE on app.outbox',
      'error server-rights: relay@% lacks REPLICATION SLAVE',
      'error server-rights: relay@% lacks REPLICATION CLIENT',
      'warning server-rights: relay@% lacks SESSION_VARIABLES_ADMIN',
      'warning server-rights: relay@% lacks PROCESS',
      "warning idle-roles: relay@% has roles that are not active: 'reader'@'%'",
    ]);
    expect(found.map(({ fix }) => fix)).toEqual([
      "GRANT SELECT ON `app`.`outbox` TO 'relay'@'%';",
      "GRANT UPDATE ON `app`.`outbox` TO 'relay'@'%';",
      "GRANT DELETE ON `app`.`outbox` TO 'relay'@'%';",
      "GRANT REPLICATION SLAVE ON *.* TO 'relay'@'%';",
      "GRANT REPLICATION CLIENT ON *.* TO 'relay'@'%';",
      "GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'relay'@'%';",
      "GRANT PROCESS ON *.* TO 'relay'@'%';",
      "SET DEFAULT ROLE 'reader'@'%' TO 'relay'@'%';",
    ]);
    for (const { effect } of found) expect(effect).not.toBeNull();
  });

  test('a trial is explained, never run', () => {
    for (const needed of neededRights(settings())) {
      for (const privilege of needed.privileges) expect(trialOf(privilege, needed)).toMatch(/^EXPLAIN /);
    }
  });
});
