/** What the source left out, since the process began. For metrics: counters only grow. */
export interface SourceCounters {
  /** Outbox rows of committed transactions whose status is not `pending`. */
  notPending: number;
  /** Outbox rows that become due a second or more after they were written: the sweep has them. */
  delayed: number;
  /** Updates that gave a row from before another primary key: REPLACE. */
  replaced: number;
}

export function newCounters(): SourceCounters {
  return { notPending: 0, delayed: 0, replaced: 0 };
}
