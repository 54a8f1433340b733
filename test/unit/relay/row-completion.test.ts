import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import { emptyRow, Form, type OutboxRow, type RowCursor } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import { newRelayStats } from '../../../src/model/stats.ts';
import type { FoundRows, Store } from '../../../src/model/store.ts';
import { RowCompletion, takeRun } from '../../../src/relay/row-completion.ts';

/** Time stands still and never waits. */
const clock: Clock = {
  nowMs: () => 0,
  after(_, call) {
    queueMicrotask(call);
    return () => undefined;
  },
};

describe('a run', () => {
  test('ends before a row that is complete, where the cursor then stands', () => {
    const cursor = cursorOf([{ id: 1 }, { id: 2 }, { id: 3, isComplete: true }, { id: 4 }]);
    expect(takeRun(cursor)).toEqual({ outbox: 0, ids: [1n, 2n], more: true });
    expect(cursor.row).toMatchObject({ idLow: 3, isComplete: true });
  });

  test('ends before a row of another table, and at the end', () => {
    const cursor = cursorOf([{ id: 1 }, { id: 2, outbox: 1 }, { id: 3, outbox: 1 }]);
    expect(takeRun(cursor)).toEqual({ outbox: 0, ids: [1n], more: true });
    expect(takeRun(cursor)).toEqual({ outbox: 1, ids: [2n, 3n], more: false });
  });

  test('is of 500 rows or 4 MiB at most', () => {
    const many = cursorOf(Array.from({ length: 501 }, (_, n) => ({ id: n + 1 })));
    expect([takeRun(many).ids.length, takeRun(many).ids.length]).toEqual([500, 1]);
    const large = cursorOf(Array.from({ length: 5 }, (_, n) => ({ id: n + 1, valueBytes: 2_097_152 })));
    expect([takeRun(large).ids.length, takeRun(large).ids.length]).toEqual([2, 2]);
  });

  test('keeps ids of 64 bits and keys of bytes', () => {
    const cursor = cursorOf([{ id: 1, idHigh: 0xffff_ffff }, { key: 'ü\0' }]);
    expect(takeRun(cursor).ids).toEqual([(0xffff_ffffn << 32n) | 1n, 'c3bc00']);
  });
});

describe('reading', () => {
  const run = { outbox: 0, ids: [1n, 2n], more: false };

  test('goes on for as long as it may pass, and names what is gone', async () => {
    const asked: number[] = [];
    const answers = [lockWait(), lockWait(), { rows: cursorOf([]), gone: [2n] }];
    const lines: string[] = [];
    const stats = newRelayStats();
    const completion = new RowCompletion(storeOf(answers, asked), clock, logTo(lines), ['app.outbox'], stats);
    expect(await completion.read(run, 1_500, new AbortController().signal)).not.toBeNull();
    // Whole seconds: due is what is available before the next one.
    expect(asked).toEqual([2_000, 2_000, 2_000]);
    expect(stats.goneRows).toBe(1);
    expect(lines).toEqual(['row-read-failed', 'row-read-recovered', 'rows-gone-before-read']);
  });

  test('throws what cannot pass', async () => {
    const store = storeOf([fault('MYSQL_FOREIGN_SERVER', 'renew', 'other')], []);
    const reading = new RowCompletion(store, clock, logTo([]), ['app.outbox']).read(
      run,
      0,
      new AbortController().signal,
    );
    await expect(reading).rejects.toMatchObject({ fault: { code: 'MYSQL_FOREIGN_SERVER' } });
  });

  test('ends when it is told to', async () => {
    const stop = new AbortController();
    const store = storeOf([lockWait(), lockWait(), lockWait()], [], () => stop.abort());
    expect(await new RowCompletion(store, clock, logTo([]), ['app.outbox']).read(run, 0, stop.signal)).toBeNull();
  });
});

function lockWait(): Error {
  return fault('MYSQL_LOCK_WAIT', 'retry', 'reading rows');
}

/** A store that gives these answers in turn: what a real one does is proved elsewhere, its order of answers is ours. */
function storeOf(answers: (FoundRows | Error)[], asked: number[], onAsked = () => undefined as unknown): Store {
  const readRows = (_: number, __: readonly RowId[], dueBeforeMs: number): Promise<FoundRows> => {
    asked.push(dueBeforeMs);
    onAsked();
    const answer = answers.shift()!;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return { readRows } as unknown as Store;
}

function logTo(lines: string[]): Log {
  const log: Log = {
    debug: () => undefined,
    info: (event) => lines.push(event),
    warn: (event) => lines.push(event),
    error: (event) => lines.push(event),
    child: () => log,
  };
  return log;
}

interface Made extends Partial<Pick<OutboxRow, 'outbox' | 'idHigh' | 'isComplete'>> {
  readonly id?: number;
  readonly key?: string;
  readonly valueBytes?: number;
}

/** Stands at the first row, as the router's does when it meets one that is not complete. */
function cursorOf(rows: readonly Made[]): RowCursor {
  const row = emptyRow();
  let at = 0;
  const cursor: RowCursor = {
    row,
    next() {
      if (at >= rows.length) return false;
      const { id = 0, idHigh = 0, outbox = 0, isComplete = false, key, valueBytes = 0 } = rows[at++];
      Object.assign(row, { idLow: id, idHigh, outbox, isComplete });
      Object.assign(row.value, { form: Form.Text, start: 0, end: valueBytes });
      const bytes = Buffer.from(key ?? '');
      const form = key === undefined ? Form.Null : Form.Text;
      Object.assign(row.idBytes, { form, buffer: bytes, start: 0, end: bytes.length });
      return true;
    },
  };
  cursor.next();
  return cursor;
}
