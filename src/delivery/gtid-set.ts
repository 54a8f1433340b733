import type { GtidRun } from '../model/position.ts';

/** The transactions that a checkpoint contains. `add` is idempotent. */
export interface GtidSet {
  add(run: GtidRun): void;
  copy(): GtidSet;
  /** As the server writes it. */
  toString(): string;
}

/** Reads what the server or the offsets table says; '' is the empty set. */
export function parseGtidSet(text: string, flavour: 'mysql' | 'mariadb'): GtidSet {
  return flavour === 'mysql' ? MysqlGtidSet.parse(text) : MariadbGtidPosition.parse(text);
}

/** Interval of one source: both ends included. */
interface Interval {
  first: number;
  last: number;
}

/**
 * MySQL: intervals per source, `uuid:1-5:7, uuid:tag:1-3`. Kept sorted and merged: with one primary a source has one
 * interval, and adding the next number only moves its end.
 * Format: MySQL manual, "GTID Sets"; tags since 8.3.
 */
class MysqlGtidSet implements GtidSet {
  readonly #bySid = new Map<string, Interval[]>();

  static parse(text: string): MysqlGtidSet {
    const set = new MysqlGtidSet();
    for (const part of text.split(',')) {
      const [uuid, ...fields] = part.trim().split(':');
      let sid = uuid.toLowerCase();
      for (const field of fields) {
        if (/^\d/.test(field.trim())) {
          const [first, last = first] = field.split('-').map(Number);
          set.add({ sid, first, last });
        } else {
          sid = `${uuid.toLowerCase()}:${field.trim()}`;
        }
      }
    }
    return set;
  }

  add({ sid, first, last }: GtidRun): void {
    let intervals = this.#bySid.get(sid);
    if (intervals === undefined) this.#bySid.set(sid, (intervals = []));
    const end = intervals.at(-1);
    if (end !== undefined && first > end.last) {
      if (first === end.last + 1) end.last = last;
      else intervals.push({ first, last });
      return;
    }
    const merged = { first, last };
    const kept: Interval[] = [];
    for (const interval of intervals) {
      if (interval.last + 1 < merged.first || interval.first > merged.last + 1) kept.push(interval);
      else {
        merged.first = Math.min(merged.first, interval.first);
        merged.last = Math.max(merged.last, interval.last);
      }
    }
    kept.push(merged);
    this.#bySid.set(
      sid,
      kept.sort((a, b) => a.first - b.first),
    );
  }

  copy(): MysqlGtidSet {
    const copy = new MysqlGtidSet();
    for (const [sid, intervals] of this.#bySid) {
      copy.#bySid.set(
        sid,
        intervals.map((interval) => ({ ...interval })),
      );
    }
    return copy;
  }

  toString(): string {
    return [...this.#bySid.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([sid, intervals]) =>
          `${sid}:${intervals.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(':')}`,
      )
      .join(',');
  }
}

/** MariaDB: the last transaction per domain, `0-1-1234,1-2-5`. A run's sid is `domain-server`. */
class MariadbGtidPosition implements GtidSet {
  readonly #byDomain = new Map<string, { server: string; last: number }>();

  static parse(text: string): MariadbGtidPosition {
    const position = new MariadbGtidPosition();
    for (const part of text.split(',')) {
      if (part.trim() === '') continue;
      const [domain, server, last] = part.trim().split('-');
      position.#byDomain.set(domain, { server, last: Number(last) });
    }
    return position;
  }

  add({ sid, last }: GtidRun): void {
    const [domain, server] = sid.split('-');
    this.#byDomain.set(domain, { server: server, last });
  }

  copy(): MariadbGtidPosition {
    const copy = new MariadbGtidPosition();
    for (const [domain, at] of this.#byDomain) copy.#byDomain.set(domain, at);
    return copy;
  }

  toString(): string {
    return [...this.#byDomain.entries()]
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([domain, { server, last }]) => `${domain}-${server}-${last}`)
      .join(',');
  }
}
