import fc from 'fast-check';
import {
  AGGREGATES,
  type Call,
  CALLS,
  type Plan,
  type PlannedFault,
  type PlannedRow,
  type SendFault,
  TOPICS,
  type Write,
} from './plan.ts';

/** When things happen: mostly close together. */
const atMs = fc.oneof(fc.nat(60), fc.nat(300), fc.nat(2_000));
const forMs = fc.oneof(fc.nat(50), fc.nat(400), fc.nat(3_000));

const cancelMs = fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, fc.nat(2_000));

const poison: fc.Arbitrary<PlannedRow['poison']> = fc.oneof(
  { weight: 12, arbitrary: fc.constant(null) },
  {
    weight: 1,
    arbitrary: fc.record({
      code: fc.constantFrom('CORRUPT_MESSAGE' as const, 'MESSAGE_TOO_LARGE' as const),
      times: fc.constant(Infinity),
    }),
  },
  // What is definite fails the row at once: only the others may pass.
  {
    weight: 2,
    arbitrary: fc.record({ code: fc.constant('CORRUPT_MESSAGE' as const), times: fc.integer({ min: 1, max: 2 }) }),
  },
);

const row: fc.Arbitrary<PlannedRow> = fc.record({
  aggregate: fc.oneof(fc.constant(0), fc.nat(AGGREGATES.length - 1)),
  delayMs: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(1_100, 1_500) }),
  valueBytes: fc.oneof(
    { weight: 6, arbitrary: fc.constant(10) },
    { weight: 1, arbitrary: fc.constantFrom(6_000, 20_000) },
  ),
  poison,
});

const write: fc.Arbitrary<Write> = fc.record({
  afterMs: fc.oneof({ weight: 3, arbitrary: fc.nat(3) }, fc.nat(40), fc.nat(400)),
  kind: fc.oneof(
    { weight: 10, arbitrary: fc.constant('plain' as const) },
    { weight: 1, arbitrary: fc.constant('incomplete' as const) },
    { weight: 1, arbitrary: fc.constant('pieces' as const) },
    { weight: 2, arbitrary: fc.constant('undecodable' as const) },
    { weight: 1, arbitrary: fc.constant('unreadable' as const) },
    { weight: 1, arbitrary: fc.constant('rolled-back' as const) },
  ),
  rows: fc.array(row, { minLength: 1, maxLength: 3 }),
  idsBefore: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(3)),
  visibleAfterMs: fc.oneof({ weight: 3, arbitrary: fc.nat(2) }, fc.nat(60), fc.nat(400)),
});

const MYSQL_CALLS = [
  ...(['look', 'log end', 'claim', 'claimed rows', 'write back'] as const),
  ...(['barrier', 'flush', 'fail', 'read rows', 'jobs', 'other'] as const),
];

const how = fc.constantFrom<SendFault>('refused', 'producer', 'lost', 'unanswered', 'late', 'forbidden');

function slow(call: Call, byMs: fc.Arbitrary<number>): fc.Arbitrary<PlannedFault> {
  return fc.record({ kind: fc.constant('slow' as const), atMs, forMs, call: fc.constant(call), byMs });
}

const republish = fc.record({
  kind: fc.constant('republish' as const),
  ...{ atMs, cancelMs },
  aggregate: fc.oneof(fc.constant(-1), fc.nat(AGGREGATES.length - 1)),
});
const resync = fc.record({ kind: fc.constant('resync' as const), atMs, cancelMs, back: fc.constantFrom(0, 0, 3) });

const grow: fc.Arbitrary<PlannedFault> = fc.record({ kind: fc.constant('grow' as const), atMs });

/** So long that it is seen. */
const longMs = fc.integer({ min: 1_000, max: 3_000 });

/** What people ask for in MySQL; the relay looks for it about once a second. */
const asked: fc.Arbitrary<PlannedFault> = fc.oneof(
  { weight: 3, arbitrary: republish },
  { weight: 1, arbitrary: resync },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pause' as const), atMs, forMs: fc.oneof(forMs, longMs) }) },
);
const ASKED: ReadonlySet<PlannedFault['kind']> = new Set(['republish', 'resync', 'pause']);

const fault: fc.Arbitrary<PlannedFault> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), atMs, downMs: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('freeze' as const), atMs, forMs }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('stop' as const), atMs, restMs: fc.nat(300), isAwaited: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lock' as const), atMs }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kafka' as const), atMs, forMs }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('purge' as const), atMs }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('deadlock' as const),
      ...{ atMs, forMs },
      call: fc.constantFrom<Call>('claim', 'write back', 'barrier', 'flush', 'fail', 'jobs'),
    }),
  },
  { weight: 4, arbitrary: asked },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('act' as const),
      ...{ atMs, forMs },
      action: fc.constantFrom('retry' as const, 'discard' as const),
      isMended: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stream' as const), atMs }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('hold' as const),
      ...{ atMs, row: fc.nat(11) },
      forMs: fc.oneof({ weight: 9, arbitrary: forMs }, { weight: 1, arbitrary: fc.constant(20_000) }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('partition' as const),
      ...{ atMs, forMs, how },
      topic: fc.nat(TOPICS.length - 1),
      partition: fc.nat(1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('topic' as const), atMs, forMs, topic: fc.nat(TOPICS.length - 1) }),
  },
  { weight: 1, arbitrary: grow },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('log' as const), atMs, forMs }) },
  {
    weight: 2,
    arbitrary: fc
      .record({
        kind: fc.constant('mysql' as const),
        ...{ atMs, forMs: fc.nat(200), done: fc.boolean() },
        call: fc.constantFrom(...MYSQL_CALLS),
      })
      // An attempt that was counted and not confirmed is counted again: its row may fail before its time.
      .map((fault) => (fault.call === 'fail' ? { ...fault, done: false } : fault)),
  },
  { weight: 1, arbitrary: slow('look', fc.nat(60)) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(...CALLS)
      .filter((call) => call !== 'look')
      .chain((call) => slow(call, fc.oneof(fc.nat(100), fc.nat(1_000), fc.nat(7_000)))),
  },
);

/** Most calls are quick; now and then one takes longer than everything around it. */
const delayMs = fc.oneof({ weight: 4, arbitrary: fc.nat(3) }, { weight: 2, arbitrary: fc.nat(20) }, fc.nat(250));

const soon: fc.Arbitrary<Plan> = fc.record({
  mode: fc.oneof(
    { weight: 9, arbitrary: fc.constant('tail' as const) },
    { weight: 1, arbitrary: fc.constant('sweep' as const) },
  ),
  delaysMs: fc.array(delayMs, { maxLength: 40 }),
  seed: fc.nat(1_000),
  startMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(200)),
  retire: fc.constantFrom('mark' as const, 'mark' as const, 'delete' as const, 'keep' as const),
  onExhausted: fc.constantFrom('release' as const, 'release' as const, 'block' as const),
  hasDeadLetters: fc.oneof({ weight: 2, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  sizes: fc.record({
    batchRecords: fc.integer({ min: 1, max: 4 }),
    flushRows: fc.integer({ min: 1, max: 8 }),
    sweepRows: fc.integer({ min: 1, max: 4 }),
    poolBuffers: fc.integer({ min: 4, max: 8 }),
  }),
  writes: fc.array(write, { minLength: 1, maxLength: 10 }),
  faults: fc.array(fault, { maxLength: 4 }),
});

/** The relay has looked for what people ask for, and looks again a little later: what they ask for is asked before. */
const NEXT_LOOK_MS = 950;
/** Topics in use are asked for again. */
const NEXT_REFRESH_MS = 29_950;

const askedBefore = later(asked, NEXT_LOOK_MS);
const grownBefore = later(grow, NEXT_REFRESH_MS);

export const plans: fc.Arbitrary<Plan> = fc
  .oneof({ weight: 8, arbitrary: soon }, { weight: 4, arbitrary: askedBefore }, { weight: 1, arbitrary: grownBefore })
  .map((plan) => (plan.retire === 'keep' ? keepable(plan) : plan));

/** Of a relay that only reads the log, without what it leaves to people: whatever would have to go by the sweep. */
function keepable(plan: Plan): Plan {
  return {
    ...plan,
    mode: 'tail',
    writes: plan.writes.map((each) => ({
      ...each,
      kind: NEEDS_SWEEP.has(each.kind) ? 'plain' : each.kind,
      rows: each.rows.map((planned) => ({ ...planned, delayMs: 0, poison: null })),
    })),
    faults: plan.faults
      .filter(({ kind }) => !ENDS_KEEPING.has(kind))
      .map((each) => (each.kind === 'partition' && each.how === 'forbidden' ? { ...each, how: 'refused' } : each)),
  };
}

const NEEDS_SWEEP: ReadonlySet<Write['kind']> = new Set(['undecodable', 'unreadable', 'rolled-back']);
/** Rows sent again are mixed with those that come: nothing holds them. */
const ENDS_KEEPING: ReadonlySet<PlannedFault['kind']> = new Set(['log', 'purge', 'topic', 'republish', 'resync']);

/** After the first transaction everything happens so much later, but for what is asked for, and `what`. */
function later(what: fc.Arbitrary<PlannedFault>, byMs: number): fc.Arbitrary<Plan> {
  return fc.tuple(soon, what).map(([plan, first]) => ({
    ...plan,
    writes: plan.writes.map((each, index) => (index === 1 ? { ...each, afterMs: each.afterMs + byMs } : each)),
    faults: [first, ...plan.faults.map((each) => (ASKED.has(each.kind) ? each : { ...each, atMs: each.atMs + byMs }))],
  }));
}
