import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import type { CliProcess } from '../stack/relay-process.ts';
import { TOPIC } from './stand.ts';

const FIRST_POLL_MS = 10;
const POLL_MS = 100;
const STALL_MS = 60_000;

export interface Arrivals {
  /** `performance.now()` when records were first seen in the topic, and how many they were. */
  readonly firstMs: number;
  readonly firstCount: number;
  /** When all of them were there. */
  readonly lastMs: number;
}

/** Watches `rows` records come into the topic behind the `before` that it has. */
export async function watchArrivals(admin: Admin, relay: CliProcess, before: number, rows: number): Promise<Arrivals> {
  let firstMs = 0;
  let firstCount = 0;
  let count = 0;
  for (let changedMs = performance.now(); count < rows;) {
    const now = (await endOffsets(admin)) - before;
    const nowMs = performance.now();
    if (now > count) changedMs = nowMs;
    else if (nowMs - changedMs > STALL_MS)
      throw new Error(`stuck at ${now} of ${rows} rows:\n${relay.stderr().slice(-3000)}`);
    if (count === 0 && now > 0) [firstMs, firstCount] = [nowMs, now];
    count = now;
    if (count < rows) await sleep(count === 0 ? FIRST_POLL_MS : POLL_MS);
  }
  return { firstMs, firstCount, lastMs: performance.now() };
}

export async function endOffsets(admin: Admin): Promise<number> {
  const partitions = await admin.fetchTopicOffsets(TOPIC);
  return partitions.reduce((sum, { high }) => sum + Number(high), 0);
}
