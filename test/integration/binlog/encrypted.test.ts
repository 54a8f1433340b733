import { open } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { isMariadb } from '../../stack/flavour.ts';
import { startMysqlWithKeyring } from '../../stack/stack.ts';
import { BinlogBed, insertOf, keysOf } from './binlog-bed.ts';

/** The server decrypts what it sends. */
it.skipIf(isMariadb())('an encrypted log is read like any other, compressed or over the bound', async ({ skip }) => {
  const server = await startMysqlWithKeyring({ flags: ['--binlog-encryption=ON'] });
  if (server === null) return skip('the image has no keyring');
  await using bed = await BinlogBed.open(server);
  const [log] = await bed.sql('SHOW BINARY LOGS');
  expect(log).toMatchObject({ Encrypted: 'Yes' });
  const [{ file }] = (await bed.sql("SELECT CONCAT(@@log_bin_basename, '.000001') AS file")) as [{ file: string }];
  await using handle = await open(file);
  const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
  // A plain one begins with fe 'bin'.
  expect(buffer.toString('latin1')).toBe('\xfdbin');
  const keys = Array.from({ length: 2_000 }, (_, n) => `${n}-${'x'.repeat(100)}`);
  const read = await bed.read(
    () =>
      bed.session(insertOf('a'), insertOf(...keys), 'SET SESSION binlog_transaction_compression = ON', insertOf('b')),
    { maxTransactionBytes: 65_536 },
  );
  expect(keysOf(read)).toEqual([['a'], keys, ['b']]);
  // Reading ahead has to know where the log ends.
  await bed.sql('SET GLOBAL binlog_row_metadata = MINIMAL');
  expect(keysOf(await bed.read(() => bed.session(insertOf('nameless'))))).toEqual([['nameless']]);
});
