import type { ParkedEntry } from '../../../src/model/parked.ts';
import type { Broker, Sending, SentRow } from './broker.ts';
import type { SentBatch } from './decode-batch.ts';
import type { Plan } from './plan.ts';
import type { Server } from './server.ts';
import { headerId, partitionOfRow, scopeKeyOf, type TableRow } from './table.ts';

/** A promise that was broken. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/** Attempts of its own that a row gets before it fails. */
export const MAX_ATTEMPTS = 4;

/**
 * Judges what the world has seen, step by step.
 * - I1 no committed row is lost: published in the table only when in its topic, failed only when it was refused
 * - I2 first deliveries of a topic and key are in commit order; among rows of the sweep, those that wait go by id
 * - I3 nothing is delivered twice unless something broke
 * - I4 nothing is delivered that was not committed
 * - a relay that is paused sends and writes nothing
 * - I5 a saved checkpoint passes no row that is not settled and that no written scope covers
 */
export class Watch {
  readonly #server: Server;
  readonly #broker: Broker;
  readonly #deliveries = new Map<TableRow, number>();
  /** Rows in the order of their first deliveries. */
  readonly order: TableRow[] = [];
  /** Rows that the sweep has claimed at some time. */
  readonly swept = new Set<TableRow>();
  /** Scopes that were ever written, by name. */
  readonly everParked = new Set<string>();
  #mayRepeat = false;
  #broken: Broken | null = null;

  /** Nothing waits for a row that has failed. */
  readonly #releases: boolean;
  readonly #trace: (line: () => string) => void;

  constructor(server: Server, broker: Broker, plan: Plan, trace: (line: () => string) => void) {
    this.#releases = plan.onExhausted === 'release';
    this.#server = server;
    this.#broker = broker;
    this.#trace = trace;
    server.onCommitted = (what) => this.#afterCommit(what);
    server.onPausedWork = (what) => this.pausedWork(what);
    broker.onAppend = (sending) => this.#appended(sending);
  }

  /** Throws what was broken first. */
  check(): void {
    if (this.#broken !== null) throw this.#broken;
  }

  /** Something happened after which rows may be sent again. */
  faulted(): void {
    this.#mayRepeat = true;
  }

  pausedWork(what: string): void {
    this.#break(`paused, and ${what}`);
  }

  deliveries(row: TableRow): number {
    return this.#deliveries.get(row) ?? 0;
  }

  /** A batch leaves a relay. */
  sent({ topic, partition, batch }: { topic: string; partition: number; batch: SentBatch }): Sending {
    const rows = batch.records.flatMap((record): SentRow[] => {
      const id = record.headers.get('id') ?? '';
      const row = this.#server.rows[Number(id.slice(1))] as TableRow | undefined;
      if (row === undefined || headerId(row) !== id) {
        this.#break(`I4 a record '${id}' that is no row's`);
        return [];
      }
      if (record.key !== row.key || record.value !== row.value || topic !== row.topic) {
        this.#break(`I1 r${row.number} sent as something else`);
      }
      return [{ row, isSwept: row.status === 'processing' }];
    });
    this.#trace(() => `sent to ${topic}/${partition}: ${namesOf(rows)} as ${batch.producerId}:${batch.firstSequence}`);
    return { topic, partition, batch, rows };
  }

  #appended({ topic, partition, rows }: Sending): void {
    this.#trace(() => `appended to ${topic}/${partition}: ${namesOf(rows)}`);
    for (const { row, isSwept } of rows) {
      const before = this.deliveries(row);
      this.#deliveries.set(row, before + 1);
      if (before === 0) this.order.push(row);
      if (before > 0) {
        if (!this.#mayRepeat) this.#break(`I3 r${row.number} delivered twice without a fault`);
      } else if (row.key !== null) {
        if (row.isDelayed) this.#inOrderOfDueTimes(row);
        else this.#inOrder(row, isSwept);
      }
    }
  }

  #inOrder(row: TableRow, isSwept: boolean): void {
    for (const earlier of this.#server.rows) {
      if (earlier.number >= row.number) return;
      if (earlier.topic !== row.topic || earlier.key !== row.key || earlier.isDelayed) continue;
      if (this.deliveries(earlier) > 0 || (this.#releases && isPoisoned(earlier))) continue;
      if (isSwept && row.id < earlier.id) continue;
      this.#break(`I2 r${row.number} delivered before r${earlier.number}`);
    }
  }

  /** A delayed row that was due, and could be seen, before another was: unless that one has a lower id, it is first. */
  #inOrderOfDueTimes(row: TableRow): void {
    for (const other of this.#server.rows) {
      if (!other.isDelayed || other.topic !== row.topic || other.key !== row.key || other.id >= row.id) continue;
      if (this.deliveries(other) > 0 || isPoisoned(other)) continue;
      if (Math.max(other.availableAtMs, other.entry.visibleAtMs) >= row.availableAtMs) continue;
      this.#break(`I2 r${row.number} delivered before r${other.number}, which was due before it`);
    }
  }

  #afterCommit(what: string): void {
    this.#trace(() => `${what}: ${this.#stateOf()}`);
    for (const row of this.#server.rows) {
      const { status, number } = row;
      if (status === 'processing') this.swept.add(row);
      if (status === 'published' && this.deliveries(row) === 0) {
        this.#break(`I1 r${number} marked published, not in its topic`);
      }
      if (status === 'failed' && !isPoisoned(row)) this.#break(`I1 r${number} failed without a cause`);
    }
    for (const name of this.#server.parked.keys()) this.everParked.add(name);
    this.#checkpointHolds();
  }

  #checkpointHolds(): void {
    const { offsets, log } = this.#server;
    if (offsets === null) return;
    const through = log.behind(offsets.checkpoint.position);
    for (const row of this.#server.rows) {
      if (row.entry.index >= through) return;
      if (row.isDelayed || row.status === 'published' || row.status === 'failed') continue;
      // In its topic, and the application kept it from being marked: it is sent again at worst, and I3 tells whether.
      if (this.deliveries(row) > 0) continue;
      if (![...this.#server.parked.values()].some((entry) => this.#covers(entry, row))) {
        this.#break(`I5 the checkpoint passed r${row.number} (${row.status}), and no written scope covers it`);
      }
    }
  }

  #covers({ scope, partitions }: ParkedEntry, row: TableRow): boolean {
    if (scope.kind === 'everything') return true;
    if (scope.topic !== row.topic) return false;
    if (scope.kind === 'topic') return true;
    if (scope.kind === 'pair') return scope.key.equals(scopeKeyOf(row));
    const count = partitions > 0 ? partitions : this.#broker.topics.get(row.topic)!.partitions.length;
    return scope.partition === partitionOfRow(row, count);
  }

  #stateOf(): string {
    const rows = this.#server.rows.map(({ number, status }) => `r${number} ${status}`);
    const { offsets, log, parked } = this.#server;
    const through = offsets === null ? 'none' : log.behind(offsets.checkpoint.position);
    return `${rows.join(', ')}; checkpoint behind ${through}; parked: ${[...parked.keys()].join(', ')}`;
  }

  #break(what: string): void {
    this.#broken ??= new Broken(what);
  }
}

function namesOf(rows: readonly SentRow[]): string {
  return rows.map(({ row, isSwept }) => `r${row.number}${isSwept ? ' (swept)' : ''}`).join(', ');
}

/** It will fail: nothing waits for it. */
export function isPoisoned({ poison, isMended }: TableRow): boolean {
  return poison !== null && !isMended && (poison.times >= MAX_ATTEMPTS || poison.code === 'MESSAGE_TOO_LARGE');
}
