import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import type { TlsSettings } from '../../../src/model/settings.ts';
import { makeAuthority, type Authority } from '../../stack/certificates.ts';
import { startMysql } from '../../stack/stack.ts';
import { BinlogBed, insertOf, keysOf } from './binlog-bed.ts';

const READER = { user: 'reader', password: 'reader password' };
let authority: Authority;
let bed: BinlogBed;
beforeAll(async () => {
  authority = await makeAuthority();
  bed = await BinlogBed.open(await startMysql({ certificate: await authority.issue() }));
  await bed.sql(`CREATE USER 'reader'@'%' IDENTIFIED BY '${READER.password}' REQUIRE SSL;
                 GRANT REPLICATION SLAVE, SELECT ON *.* TO 'reader'@'%'`);
});
afterAll(() => bed[Symbol.asyncDispose]());

describe('I5 over TLS, with a password that the server has to check anew', () => {
  const read = async (tls: TlsSettings | null, host = 'localhost') => {
    await bed.sql('FLUSH PRIVILEGES');
    return bed.read(() => bed.sql(insertOf('a')), { mysql: { ...READER, host, tls } });
  };

  it('both connections trust the authority that was given', async () => {
    expect(keysOf(await read({ ca: authority.ca, verify: true }))).toEqual([['a']]);
  });

  it('much data comes whole', async () => {
    const log = await bed.read(
      async () => {
        for (let n = 0; n < 30; n++) {
          await bed.sql(`INSERT INTO outbox (topic, aggregate_id, payload)
                         VALUES ('t', 'k${n}', JSON_QUOTE(REPEAT('x', 300000)))`);
        }
      },
      { mysql: { ...READER, host: 'localhost', tls: { ca: authority.ca, verify: true } } },
    );
    expect(keysOf(log)).toEqual(Array.from({ length: 30 }, (_, n) => [`k${n}`]));
  });

  it.each<[string, () => Promise<TlsSettings | null>]>([
    ['another authority', async () => ({ ca: (await makeAuthority()).ca, verify: true })],
    ['no TLS where the server asks for it', () => Promise.resolve(null)],
  ])('%s is refused for good', async (_, tls) => {
    const error = await read(await tls()).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RelayError);
    expect((error as RelayError).fault).toMatchObject({ code: 'MYSQL_ACCESS_DENIED', disposition: 'halt' });
    expect((error as RelayError).message).not.toContain(READER.password);
  });
});
