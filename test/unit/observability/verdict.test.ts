import { describe, expect, test } from 'vitest';
import { type Vitals, verdictOf } from '../../../src/observability/verdict.ts';

const LONG = 60_000;
const NOT_PARKED = { pair: 0, 'topic-partition': 0, topic: 0, everything: 0 };
const TERM: NonNullable<Vitals['term']> = {
  isTailing: true,
  lanes: { inUse: 3, sending: 0, heldBytes: 0 },
  parked: NOT_PARKED,
  unflushedRows: 0,
  lockedRows: 0,
};
/** Everything is delivered, and nothing has been written for a long time. */
const IDLE: Vitals = {
  phase: 'flowing',
  phaseForMs: LONG,
  fault: null,
  database: { silentMs: 0, fault: null },
  term: TERM,
  tailBehindMs: 0,
  tailLagMs: 0,
  sinceRoutedMs: LONG,
  poolWaitsMs: null,
  unsettledMs: 0,
  sinceAckedMs: LONG,
  sinceFlushedMs: LONG,
  oldestPendingMs: 0,
  stillPendingMs: 0,
  heldLanes: [],
  stuckLane: null,
};
/** Everything moves. */
const BUSY: Vitals = { ...IDLE, sinceRoutedMs: 3, sinceAckedMs: 5, sinceFlushedMs: 80 };
const SENDING = { ...TERM, lanes: { ...TERM.lanes, sending: 1 } };
const parked = (kind: keyof typeof NOT_PARKED) => ({ ...TERM, parked: { ...NOT_PARKED, [kind]: 1 } });
const parts = (vitals: Vitals): string[] => verdictOf(vitals).stuck.map(({ part }) => part);

describe('the word', () => {
  test.each<[string, string, Vitals]>([
    ['nothing to do', 'FLOWING', IDLE],
    ['everything moves', 'FLOWING', BUSY],
    ['a backlog of the log that shrinks', 'CATCHING UP', { ...BUSY, tailLagMs: LONG }],
    ['a backlog of the lanes that shrinks', 'CATCHING UP', { ...BUSY, unsettledMs: LONG, term: SENDING }],
    [
      'a backlog of the tables that shrinks',
      'CATCHING UP',
      { ...BUSY, oldestPendingMs: LONG, term: parked('everything') },
    ],
    ['a little behind', 'FLOWING', { ...BUSY, unsettledMs: 2_000, tailBehindMs: 1_000 }],
    ['no binlog', 'SWEEP ONLY', { ...BUSY, term: { ...TERM, isTailing: false } }],
    ['another leads', 'STANDBY', { ...IDLE, phase: 'standby', term: null }],
    ['it has just become leader', 'CATCHING UP', { ...IDLE, phase: 'leading', phaseForMs: 100, term: null }],
    ['it cannot begin', 'STUCK', { ...IDLE, phase: 'leading', term: null, fault: 'KAFKA_UNREACHABLE' }],
    ['people have asked for a pause', 'PAUSED', { ...IDLE, phase: 'paused', term: null, oldestPendingMs: LONG }],
    [
      'a pause, and MySQL answers no more',
      'UNKNOWN',
      { ...IDLE, phase: 'paused', term: null, database: { silentMs: LONG, fault: 'MYSQL_UNREACHABLE' } },
    ],
    ['it drains', 'STOPPED', { ...BUSY, phase: 'stopping' }],
    ['it has ended', 'STOPPED', { ...IDLE, phase: 'stopped', term: null }],
    ['a fault ended it', 'STOPPED', { ...IDLE, phase: 'halted', term: null }],
    [
      'MySQL never answered',
      'UNKNOWN',
      { ...IDLE, phase: 'starting', term: null, database: { silentMs: null, fault: 'MYSQL_UNREACHABLE' } },
    ],
    ['MySQL answers no more', 'UNKNOWN', { ...BUSY, database: { silentMs: 10_000, fault: 'MYSQL_QUERY_TIMEOUT' } }],
    [
      'MySQL answers no more, and another leads',
      'UNKNOWN',
      { ...IDLE, phase: 'standby', term: null, database: { silentMs: LONG, fault: 'MYSQL_UNREACHABLE' } },
    ],
  ])('%s: %s', (_, word, vitals) => {
    expect(verdictOf(vitals).word).toBe(word);
    expect(verdictOf(vitals).stuck.length > 0).toBe(word === 'STUCK');
  });
});

describe('what is stuck', () => {
  test.each<[string, string[], Vitals]>([
    ['the stream is frozen', ['tail'], { ...IDLE, tailBehindMs: LONG, oldestPendingMs: LONG, stillPendingMs: LONG }],
    [
      'the stream is frozen, a moment before that is sure',
      [],
      { ...IDLE, tailBehindMs: 9_900, oldestPendingMs: 10_100, stillPendingMs: 10_100 },
    ],
    ['log of others is read', [], { ...IDLE, tailBehindMs: LONG, sinceRoutedMs: 10 }],
    ['a huge transaction is read', [], { ...IDLE, tailBehindMs: LONG, sinceAckedMs: 10 }],
    [
      'the source waits for the lanes',
      ['kafka'],
      { ...IDLE, tailBehindMs: LONG, poolWaitsMs: LONG, unsettledMs: LONG, term: SENDING },
    ],
    ['Kafka does not answer', ['kafka'], { ...IDLE, unsettledMs: LONG, term: SENDING }],
    ['a batch has just been sent after a quiet hour', [], { ...IDLE, unsettledMs: 5, term: SENDING }],
    ['one lane of many', ['lane'], { ...BUSY, heldLanes: [{ lane: 'orders/3', heldMs: LONG }] }],
    ['one lane, not for long', [], { ...BUSY, heldLanes: [{ lane: 'orders/3', heldMs: 500 }] }],
    [
      'a lane that has left memory, the others flow',
      ['lane'],
      { ...BUSY, term: parked('topic-partition'), stuckLane: { lane: 'orders/3', stuckMs: LONG } },
    ],
    [
      'a lane has just left memory, the others flow',
      [],
      { ...BUSY, term: parked('topic-partition'), stuckLane: { lane: 'orders/3', stuckMs: 10 } },
    ],
    [
      'all lanes have just left memory',
      ['lane'],
      { ...IDLE, term: parked('topic-partition'), stuckLane: { lane: 'orders/3', stuckMs: 10 } },
    ],
    [
      'MySQL takes no flush',
      ['flush'],
      { ...BUSY, sinceFlushedMs: LONG, unsettledMs: LONG, term: { ...TERM, unflushedRows: 9 } },
    ],
    [
      'the application holds what is delivered',
      [],
      { ...IDLE, unsettledMs: LONG, oldestPendingMs: LONG, stillPendingMs: LONG, term: { ...TERM, lockedRows: 1 } },
    ],
    ['the sweep does not serve', ['sweep'], { ...IDLE, oldestPendingMs: LONG, stillPendingMs: LONG }],
    ['what was pending before the last acknowledgement', [], { ...IDLE, oldestPendingMs: LONG }],
    [
      'rows wait for a topic that is missing',
      [],
      { ...IDLE, oldestPendingMs: LONG, stillPendingMs: LONG, term: parked('topic') },
    ],
    ['rows of one aggregate wait', [], { ...IDLE, oldestPendingMs: LONG, stillPendingMs: LONG, term: parked('pair') }],
  ])('%s: %j', (_, stuck, vitals) => {
    expect(parts(vitals)).toEqual(stuck);
  });
});

describe('the lag', () => {
  test('is nothing where nothing waits, however long nothing has been written', () => {
    expect(verdictOf(IDLE).lagMs).toBe(0);
  });

  test('is the oldest of what waits anywhere', () => {
    expect(verdictOf({ ...BUSY, tailBehindMs: 3, tailLagMs: 2, unsettledMs: 1, oldestPendingMs: 4 }).lagMs).toBe(4);
    expect(verdictOf({ ...BUSY, tailBehindMs: 3, tailLagMs: 9, unsettledMs: 1, oldestPendingMs: 4 }).lagMs).toBe(9);
  });

  test('is not what single scopes hold back, nor what only the application holds', () => {
    expect(verdictOf({ ...BUSY, oldestPendingMs: LONG, unsettledMs: 7, term: parked('pair') }).lagMs).toBe(7);
    const locked = { ...TERM, lockedRows: 2 };
    expect(verdictOf({ ...IDLE, oldestPendingMs: LONG, unsettledMs: LONG, term: locked }).lagMs).toBe(0);
  });

  test('grows in a pause: what people hold back waits too', () => {
    expect(verdictOf({ ...IDLE, phase: 'paused', term: null, oldestPendingMs: LONG }).lagMs).toBe(LONG);
  });

  test('grows while the database is silent: nobody knows what waits', () => {
    expect(verdictOf({ ...BUSY, database: { silentMs: 30_000, fault: 'MYSQL_UNREACHABLE' } }).lagMs).toBe(30_000);
  });

  test('is none of one that stands by', () => {
    expect(verdictOf({ ...IDLE, phase: 'standby', term: null, oldestPendingMs: LONG }).lagMs).toBeNull();
  });
});
