import { Buckets, type SpillFile } from './buckets.ts';
import { AT, BUCKETS, Flag, PLACE_BYTES, RECORD_BYTES, ROW_BYTES, sortedEntries } from './entries.ts';

/** What differs between a row and a record of its identity. */
export type Part = 'key' | 'value' | 'headers';

export interface Place {
  readonly partition: number;
  readonly offset: number;
}

export type FindingKind = 'missing' | 'altered' | 'reordered' | 'duplicate';

/** Something to be told about one row; who it is, is looked up by its identity. */
export interface Finding {
  readonly kind: FindingKind;
  readonly outbox: number;
  readonly topic: number;
  /** Hexadecimal. */
  readonly identity: string;
  /** Of the row: its primary key, where that is an integer. */
  readonly order: bigint;
  readonly places: readonly Place[];
  readonly parts: readonly Part[];
}

export interface Counts {
  rows: number;
  /** Found at least once. */
  found: number;
  missing: number;
  altered: number;
  reordered: number;
  /** Records beyond the first of a row. */
  duplicates: number;
  /** Records that were sent once more on purpose. */
  replayed: number;
  /** Not found: older than what its partition still holds. */
  expired: number;
  /** Not found: a later record of its key has replaced it in a compacted topic. */
  compacted: number;
  /** Not found: so young that the relay may not have come to it. */
  undelivered: number;
  /** Out of order, as a delay or a retry may have it. */
  outOfTurn: number;
  /** Records that are none of the rows'. */
  strays: number;
}

/** What is known of a topic when rows are judged. */
export interface TopicFacts {
  readonly compacted: boolean;
  /** By partition: rows created before (milliseconds) may be gone by retention; -Infinity: nothing is gone. */
  readonly expiredBeforeMs: readonly number[];
}

export interface CompareOptions {
  readonly rows: Buckets;
  readonly records: Buckets;
  readonly spill: SpillFile;
  readonly topics: readonly TopicFacts[];
  /** By outbox: rows created from there on may be on their way; Infinity: what is looked at has been sent. */
  readonly youngFromMs: readonly number[];
  /** Findings of each kind that are kept. */
  readonly limit: number;
}

export interface Compared {
  readonly counts: Counts;
  readonly findings: readonly Finding[];
}

/** Pure but for the spill file: takes the buckets one after the other. */
export function compare(options: CompareOptions): Compared {
  return new Comparison(options).run();
}

class Comparison {
  readonly #options: CompareOptions;
  readonly #places: Buckets;
  readonly #place = Buffer.alloc(PLACE_BYTES);
  readonly #counts: Counts = {
    ...{ rows: 0, found: 0, missing: 0, altered: 0, reordered: 0, duplicates: 0, replayed: 0 },
    ...{ expired: 0, compacted: 0, undelivered: 0, outOfTurn: 0, strays: 0 },
  };
  readonly #findings: Finding[] = [];
  readonly #kept: Record<FindingKind, number> = { missing: 0, altered: 0, reordered: 0, duplicate: 0 };

  constructor(options: CompareOptions) {
    this.#options = options;
    this.#places = new Buckets(options.spill, PLACE_BYTES, BUCKETS);
  }

  run(): Compared {
    for (let bucket = 0; bucket < BUCKETS; bucket++) this.#match(bucket);
    for (let bucket = 0; bucket < BUCKETS; bucket++) this.#order(this.#places.take(bucket));
    return { counts: this.#counts, findings: this.#findings };
  }

  /** Rows and records of each identity; both are walked in the order of their identities. */
  #match(bucket: number): void {
    const rows = this.#options.rows.take(bucket);
    const records = this.#options.records.take(bucket);
    const rowOrder = sortedEntries(rows.length / ROW_BYTES, (a, b) =>
      compareAt(rows, a * ROW_BYTES, rows, b * ROW_BYTES, 16),
    );
    const recordOrder = sortedEntries(
      records.length / RECORD_BYTES,
      (a, b) =>
        compareAt(records, a * RECORD_BYTES, records, b * RECORD_BYTES, 16) ||
        compareNumbers(records, a * RECORD_BYTES + AT.partition, b * RECORD_BYTES + AT.partition) ||
        records.readDoubleBE(a * RECORD_BYTES + AT.place) - records.readDoubleBE(b * RECORD_BYTES + AT.place),
    );
    let next = 0;
    for (let i = 0; i < rowOrder.length;) {
      const row = rowOrder[i] * ROW_BYTES;
      let end = i + 1;
      while (end < rowOrder.length && compareAt(rows, row, rows, rowOrder[end] * ROW_BYTES, 16) === 0) end++;
      for (; next < recordOrder.length; next++) {
        const record = recordOrder[next] * RECORD_BYTES;
        if (compareAt(records, record, rows, row, 16) >= 0) break;
        this.#stray(records, record);
      }
      const from = next;
      while (next < recordOrder.length && compareAt(records, recordOrder[next] * RECORD_BYTES, rows, row, 16) === 0) {
        next++;
      }
      this.#judge(rows, rowOrder.subarray(i, end), records, recordOrder.subarray(from, next));
      i = end;
    }
    for (; next < recordOrder.length; next++) this.#stray(records, recordOrder[next] * RECORD_BYTES);
  }

  /**
   * One identity. As a rule it is one row; where an application has given several the same key, their records are
   * theirs in order.
   */
  #judge(rows: Buffer, ofRows: Uint32Array, records: Buffer, ofRecords: Uint32Array): void {
    const sent: number[] = [];
    const replayed: number[] = [];
    for (const index of ofRecords) {
      const at = index * RECORD_BYTES;
      ((records[at + AT.flags] & Flag.Replayed) === 0 ? sent : replayed).push(at);
    }
    this.#counts.replayed += replayed.length;
    this.#counts.rows += ofRows.length;
    for (let i = 0; i < ofRows.length; i++) {
      const row = ofRows[i] * ROW_BYTES;
      const isLast = i === ofRows.length - 1;
      const own = isLast ? sent.slice(i) : sent.slice(i, i + 1);
      if (own.length === 0 && replayed.length === 0) {
        this.#notFound(rows, row);
        continue;
      }
      this.#counts.found++;
      const all = isLast ? [...own, ...replayed] : own;
      this.#contents(rows, row, records, all);
      if (own.length > 1) {
        this.#counts.duplicates += own.length - 1;
        this.#find(
          'duplicate',
          rows,
          row,
          own.map((at) => placeOf(records, at)),
        );
      }
      if (own.length > 0) this.#keepPlace(rows, row, records, own[0]);
    }
  }

  #contents(rows: Buffer, row: number, records: Buffer, all: readonly number[]): void {
    const different = all.filter((at) => partsThatDiffer(rows, row, records, at).length > 0);
    if (different.length === 0) return;
    this.#counts.altered++;
    const parts = partsThatDiffer(rows, row, records, different[0]);
    this.#find(
      'altered',
      rows,
      row,
      different.map((at) => placeOf(records, at)),
      parts,
    );
  }

  #notFound(rows: Buffer, row: number): void {
    const { topics, youngFromMs } = this.#options;
    const createdMs = rows.readDoubleBE(row + AT.place);
    const { compacted, expiredBeforeMs } = topics[rows.readUInt16BE(row + AT.topic)];
    const edgeMs = expiredBeforeMs[rows.readUInt32BE(row + AT.partition)] ?? -Infinity;
    if (createdMs < edgeMs) this.#counts.expired++;
    else if (createdMs >= youngFromMs[rows[row + AT.outbox]]) this.#counts.undelivered++;
    else if (compacted) this.#putPlace(rows.subarray(row, row + ROW_BYTES), Flag.Missing);
    else {
      this.#counts.missing++;
      this.#find('missing', rows, row, []);
    }
  }

  /** Of a compacted topic it may be what has replaced a row. */
  #stray(records: Buffer, record: number): void {
    this.#counts.strays++;
    if (!this.#options.topics[records.readUInt16BE(record + AT.topic)].compacted) return;
    this.#putPlace(records.subarray(record, record + RECORD_BYTES), Flag.Stray);
  }

  #keepPlace(rows: Buffer, row: number, records: Buffer, record: number): void {
    this.#putPlace(rows.subarray(row, row + ROW_BYTES), 0, records, record);
  }

  #putPlace(entry: Buffer, flag: number, records?: Buffer, record = 0): void {
    const place = this.#place;
    place.fill(0);
    entry.copy(place);
    place[AT.flags] |= flag;
    if (records !== undefined) records.copy(place, AT.partition, record + AT.partition, record + AT.place + 8);
    this.#places.add(place[AT.pair], place);
  }

  /** Places of each pair, by the order of their rows; those of two outboxes have none among themselves. */
  #order(places: Buffer): void {
    const order = sortedEntries(
      places.length / PLACE_BYTES,
      (a, b) =>
        compareAt(places, a * PLACE_BYTES + AT.pair, places, b * PLACE_BYTES + AT.pair, 8) ||
        places[a * PLACE_BYTES + AT.outbox] - places[b * PLACE_BYTES + AT.outbox] ||
        compareAt(places, a * PLACE_BYTES + AT.order, places, b * PLACE_BYTES + AT.order, 8),
    );
    for (let i = 0; i < order.length;) {
      const first = order[i] * PLACE_BYTES + AT.pair;
      let end = i + 1;
      while (end < order.length && compareAt(places, first, places, order[end] * PLACE_BYTES + AT.pair, 8) === 0) end++;
      const pair = Array.from(order.subarray(i, end), (index) => index * PLACE_BYTES);
      for (const ofOutbox of byOutbox(places, pair)) {
        this.#replaced(places, ofOutbox, isReplacedFromOutside(places, pair, ofOutbox));
        this.#turns(places, ofOutbox);
      }
      i = end;
    }
  }

  /** Compaction leaves the last record of a key, and takes a tombstone in the end: what else is missing is missing. */
  #replaced(places: Buffer, ofOutbox: readonly number[], fromOutside: boolean): void {
    let isReplaced = fromOutside;
    for (const at of ofOutbox.toReversed()) {
      const flags = places[at + AT.flags];
      if ((flags & Flag.Stray) !== 0) continue;
      const isMissing = (flags & Flag.Missing) !== 0;
      isReplaced ||= !isMissing || (flags & Flag.Tombstone) !== 0;
      if (!isMissing) continue;
      if (isReplaced) this.#counts.compacted++;
      else {
        this.#counts.missing++;
        this.#find('missing', places, at, []);
      }
    }
  }

  /** First deliveries come in the order of the rows; offsets of two partitions cannot be compared. */
  #turns(places: Buffer, ofOutbox: readonly number[]): void {
    const ordered = ofOutbox.filter((at) => (places[at + AT.flags] & UNORDERED) === 0);
    const furthest = new Map<number, { offset: number; at: number; before: number }>();
    for (const at of ordered.filter((each) => !isExcepted(places, each))) {
      const { partition, offset } = placeOf(places, at);
      const seen = furthest.get(partition);
      // Rows of the same order (the same moment) have none among themselves.
      const isTie = seen !== undefined && compareAt(places, seen.at + AT.order, places, at + AT.order, 8) === 0;
      const before = seen === undefined ? -1 : isTie ? seen.before : seen.offset;
      if (offset < before) {
        const later = { partition, offset: before };
        this.#counts.reordered++;
        this.#find('reordered', places, at, [{ partition, offset }, later]);
      }
      furthest.set(partition, { offset: Math.max(offset, seen?.offset ?? -1), at, before });
    }
    const nearest = new Map<number, number>();
    for (const at of ordered.toReversed()) {
      const { partition, offset } = placeOf(places, at);
      const behind = nearest.get(partition) ?? Infinity;
      if (isExcepted(places, at) && offset > behind) this.#counts.outOfTurn++;
      nearest.set(partition, Math.min(behind, offset));
    }
  }

  #find(kind: FindingKind, entries: Buffer, at: number, places: readonly Place[], parts: readonly Part[] = []): void {
    if (this.#kept[kind]++ >= this.#options.limit) return;
    this.#findings.push({
      kind,
      outbox: entries[at + AT.outbox],
      topic: entries.readUInt16BE(at + AT.topic),
      identity: entries.toString('hex', at, at + 16),
      order: entries.readBigUInt64BE(at + AT.order),
      places,
      parts,
    });
  }
}

const UNORDERED = Flag.Missing | Flag.Stray | Flag.Unordered;

/** Entries of one pair, sorted by outbox. */
function byOutbox(places: Buffer, pair: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const [i, at] of pair.entries()) {
    if (i === 0 || places[pair[i - 1] + AT.outbox] !== places[at + AT.outbox]) runs.push([]);
    runs[runs.length - 1].push(at);
  }
  return runs;
}

/** A record of no row here, or of a row of another outbox, may have come later. */
function isReplacedFromOutside(places: Buffer, pair: readonly number[], ofOutbox: readonly number[]): boolean {
  const outbox = places[ofOutbox[0] + AT.outbox];
  return pair.some((at) => {
    const flags = places[at + AT.flags];
    return (flags & Flag.Stray) !== 0 || ((flags & Flag.Missing) === 0 && places[at + AT.outbox] !== outbox);
  });
}

/** Later than its place, and rightly so. */
function isExcepted(places: Buffer, at: number): boolean {
  return (places[at + AT.flags] & (Flag.Delayed | Flag.Retried)) !== 0;
}

function partsThatDiffer(rows: Buffer, row: number, records: Buffer, record: number): Part[] {
  const differs = (at: number) => compareAt(rows, row + at, records, record + at, 8) !== 0;
  const parts: Part[] = [];
  if (differs(AT.pair)) parts.push('key');
  if (differs(AT.value)) parts.push('value');
  if (differs(AT.headers)) parts.push('headers');
  return parts;
}

function placeOf(entries: Buffer, at: number): Place {
  return { partition: entries.readUInt32BE(at + AT.partition), offset: entries.readDoubleBE(at + AT.place) };
}

function compareAt(a: Buffer, atA: number, b: Buffer, atB: number, bytes: number): number {
  for (let i = 0; i < bytes; i += 4) {
    const difference = a.readUInt32BE(atA + i) - b.readUInt32BE(atB + i);
    if (difference !== 0) return difference;
  }
  return 0;
}

function compareNumbers(entries: Buffer, a: number, b: number): number {
  return entries.readUInt32BE(a) - entries.readUInt32BE(b);
}
