import { expect, test } from 'vitest';
import { LeftRows } from '../../../src/binlog/left-rows.ts';
import { newCounters } from '../../../src/binlog/source-counters.ts';
import type { Log } from '../../../src/model/log.ts';

test('rows that stay pending are told of at once, then once a minute, and never when there are no new ones', () => {
  const told: unknown[] = [];
  const nothing = (): void => undefined;
  const log: Log = {
    debug: nothing,
    info: nothing,
    error: nothing,
    warn: (event, fields) => told.push([event, fields?.['why'], fields?.['rows']]),
    child: () => log,
  };
  const counters = newCounters();
  const left = new LeftRows(counters, log);
  counters.notPending++;
  left.tell(0);
  expect(told).toEqual([]);
  counters.delayed = 1;
  left.tell(1);
  counters.delayed = 3;
  counters.replaced = 1;
  left.tell(50_000);
  expect(told.splice(0)).toEqual([
    ['rows-left-pending', 'delayed', 1],
    ['rows-left-pending', 'replaced', 1],
  ]);
  left.tell(60_001);
  left.tell(200_000);
  expect(told).toEqual([['rows-left-pending', 'delayed', 3]]);
});
