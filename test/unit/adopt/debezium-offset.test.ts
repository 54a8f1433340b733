import { describe, expect, test } from 'vitest';
import { lastOfEach, pickOffset } from '../../../src/adopt/debezium-offset.ts';
import { readJavaMap } from '../../../src/adopt/java-map.ts';
import { javaMap } from './java-map-writer.ts';

/** Written by Java 17: a HashMap with an offset of `inventory`, and null for `other`. */
const BY_JAVA = Buffer.from(
  'rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAx3CAAAABAAAAACdXIA' +
    'AltCrPMX+AYIVOACAAB4cAAAAB9bImludmVudG9yeSIseyJzZXJ2ZXIiOiJzaG9wIn1ddXEAfgACAAAApnsidHJhbnNhY3Rpb25faWQiOm51bGws' +
    'InRzX3NlYyI6MTcwMDAwMDAwMCwiZmlsZSI6ImJpbmxvZy4wMDAwMDMiLCJwb3MiOjE1NDcsImd0aWRzIjoiM2UxMWZhNDctNzFjYS0xMWUxLTll' +
    'MzMtYzgwYWE5NDI5NTYyOjEtMjMiLCJyb3ciOjEsInNlcnZlcl9pZCI6MjIzMzQ0LCJldmVudCI6Mn11cQB+AAIAAAAYWyJvdGhlciIseyJzZXJ2' +
    'ZXIiOiJ4In1dcHg=',
  'base64',
);
const KEY = '["inventory",{"server":"shop"}]';

function entry(key: string, value: string | null) {
  return { key: Buffer.from(key), value: value === null ? null : Buffer.from(value) };
}

describe('a file of Kafka Connect', () => {
  test('is read as Java has written it', () => {
    const entries = readJavaMap(BY_JAVA);
    expect(entries.map(({ key }) => String(key))).toEqual([KEY, '["other",{"server":"x"}]']);
    expect(pickOffset(entries, 'inventory')).toEqual({
      connector: 'inventory',
      server: 'shop',
      position: { file: 'binlog.000003', offset: 1547 },
      gtids: '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23',
      inTransaction: true,
    });
  });

  test('the one that the tests write is the same', () => {
    const value = String(readJavaMap(BY_JAVA)[0].value);
    expect(
      javaMap([
        [KEY, value],
        ['["other",{"server":"x"}]', null],
      ]),
    ).toEqual(BY_JAVA);
  });

  test('anything else is refused, wherever it ends', () => {
    for (let length = 0; length < BY_JAVA.length; length++) {
      expect(() => readJavaMap(BY_JAVA.subarray(0, length)), String(length)).toThrow(RangeError);
    }
    const other = Buffer.from(BY_JAVA.toString('latin1').replace('HashMap', 'TreeMap'), 'latin1');
    expect(() => readJavaMap(other)).toThrow('not a java.util.HashMap');
    expect(() => readJavaMap(Buffer.from('{"not": "java"}'))).toThrow('not written by Java');
  });
});

test.each([
  [[], null, 'there is no offset in it'],
  [[entry('no key', '{}')], null, 'there is no offset in it'],
  [
    [entry(KEY, '{"file": "b.1", "pos": 4}'), entry('["b",{"server":"x"}]', '{}')],
    null,
    'several connectors (inventory, b)',
  ],
  [[entry(KEY, '{"file": "b.1", "pos": 4}')], 'b', 'no offset of b'],
  [[entry(KEY, null)], null, 'was deleted'],
  [[entry(KEY, '{"lsn": 4}')], null, 'no file and pos'],
  [[entry(KEY, '{"file": "b.1", "pos": 4, "snapshot": true}')], null, 'was in its snapshot'],
])('%j of %s: %s', (entries, connector, message) => {
  expect(() => pickOffset(entries, connector)).toThrow(message);
});

test('keys and values may have their schema around them, and GTIDs their line breaks', () => {
  const key = `{"schema": null, "payload": ${KEY}}`;
  const value = '{"schema": null, "payload": {"file": "b.1", "pos": 4, "gtids": "a:1-2,\\nb:3", "row": 0, "event": 0}}';
  expect(pickOffset([entry(key, value)], null)).toMatchObject({ gtids: 'a:1-2,b:3', inTransaction: false });
  expect(pickOffset([entry(KEY, '{"file": "b.1", "pos": 4, "gtids": ""}')], null).gtids).toBeNull();
});

test('of a topic the last record of each key counts', () => {
  const records = [
    entry(KEY, '{"file": "b.1", "pos": 4}'),
    entry('["x",{}]', '1'),
    entry(KEY, '{"file": "b.1", "pos": 9}'),
  ];
  expect(pickOffset(lastOfEach(records), null).position.offset).toBe(9);
  expect(lastOfEach([...records, entry(KEY, null)])).toHaveLength(2);
});
