import { type Reading, type Value, waiting } from './reading.ts';

/** What waits in the tables, as the database and the limits say. */
export const WAITING: readonly Reading[] = [
  {
    name: 'cdc_relay_pending_rows',
    kind: 'gauge',
    help: 'Rows that are pending and due, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ pendingRows }) => pendingRows),
  },
  {
    name: 'cdc_relay_oldest_pending_seconds',
    kind: 'gauge',
    help: 'For how long the oldest row that is pending has been due, by outbox; parked ones among them. 0: none is.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ oldestPendingMs }) => (oldestPendingMs ?? 0) / 1000),
  },
  {
    name: 'cdc_relay_delayed_rows',
    kind: 'gauge',
    help: 'Rows that are pending and not due yet, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ delayedRows }) => delayedRows),
  },
  {
    name: 'cdc_relay_processing_rows',
    kind: 'gauge',
    help: 'Rows that the sweep has claimed, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ processingRows }) => processingRows),
  },
  {
    name: 'cdc_relay_failed_rows',
    kind: 'gauge',
    help: 'Rows whose status is failed, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ failedRows }) => failedRows),
  },
  {
    name: 'cdc_relay_pending_limit_passed',
    kind: 'gauge',
    help: '1 while a limit of outboxes[].limits is passed; limit: rows, age. Only of a leader.',
    labels: ['outbox', 'limit'],
    read: ({ sight }) =>
      sight.limits.flatMap(({ outbox, overRows, overAge }): Value[] => [
        [{ outbox, limit: 'rows' }, overRows ? 1 : 0],
        [{ outbox, limit: 'age' }, overAge ? 1 : 0],
      ]),
  },
  {
    name: 'cdc_relay_parked_scopes',
    kind: 'gauge',
    help: 'What waits apart, by kind: pair (one aggregate in one topic), topic-partition, topic, everything.',
    labels: ['kind'],
    read: ({ term }) =>
      term === null ? null : Object.entries(term.parked).map(([kind, scopes]) => [{ kind }, scopes] as const),
  },
  {
    name: 'cdc_relay_oldest_parked_seconds',
    kind: 'gauge',
    help: 'For how long the oldest of what waits apart has been waiting. 0: nothing is.',
    read: ({ sight: { database } }) => (database === null ? null : (database.oldestParkedMs ?? 0) / 1000),
  },
  {
    name: 'cdc_relay_jobs',
    kind: 'gauge',
    help: 'Jobs (cdc-relay resync) that are queued or running. 100 in all: that many or more.',
    labels: ['state'],
    read: ({ sight: { database } }) => {
      if (database === null) return null;
      const inState = (wanted: string): number => database.jobs.filter(({ state }) => state === wanted).length;
      return ['queued', 'running'].map((state) => [{ state }, inState(state)] as const);
    },
  },
  {
    name: 'cdc_relay_job_rows',
    kind: 'gauge',
    help: 'Rows of the job that runs: done, total. Absent while there is none, or they are not counted yet.',
    labels: ['at'],
    read: ({ sight: { database } }) => {
      const job = database?.jobs.find(({ state }) => state === 'running');
      if (job === undefined || job.done === null || job.total === null) return null;
      return [[{ at: 'done' }, job.done] as const, [{ at: 'total' }, job.total] as const];
    },
  },
];
