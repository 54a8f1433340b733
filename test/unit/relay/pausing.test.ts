import { expect, test } from 'vitest';
import type { Clock } from '../../../src/model/clock.ts';
import type { Duty } from '../../../src/model/duty.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Leader, ServerFacts } from '../../../src/model/store.ts';
import { type PausingDeps, rest, untilPaused } from '../../../src/relay/pausing.ts';

const waits: number[] = [];
const clock: Clock = {
  nowMs: () => 0,
  after(delayMs, call) {
    waits.push(delayMs);
    queueMicrotask(call);
    return () => undefined;
  },
};
const said: string[] = [];
const say = (event: string): void => void said.push(event);
const log: Log = { debug: say, info: say, warn: say, error: say, child: () => log };
const leader = {} as Leader;
const facts = {} as ServerFacts;

/** Answers one after the other; the last one for ever. */
function storeThatSays(...answers: (boolean | null | Error)[]): PausingDeps['store'] {
  return {
    serverFacts: () => Promise.resolve(facts),
    isPaused() {
      const answer = answers.length > 1 ? answers.shift()! : answers[0];
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
  };
}

function duty(goesOnWhilePaused: boolean, run: (signal: AbortSignal) => Promise<void>): () => Duty {
  return () => ({ goesOnWhilePaused, run });
}

test('what cannot be asked stays as it is, and is told once; a table that cannot say is asked once a minute', async () => {
  const away = fault('MYSQL_UNREACHABLE', 'retry', 'away');
  waits.length = 0;
  await untilPaused(
    true,
    { store: storeThatSays(away, away, null, false, true), clock, log },
    new AbortController().signal,
  );
  expect(said).toEqual(['pause-unknown', 'pause-known']);
  expect(waits.slice(2)).toEqual([60_000, 1_000]);
  const foreign = fault('MYSQL_FOREIGN_SERVER', 'renew', 'another server');
  await expect(
    untilPaused(false, { store: storeThatSays(foreign), clock, log }, new AbortController().signal),
  ).rejects.toBe(foreign);
});

test('limits are kept while a leader rests, rows are not removed; both ends end the other', async () => {
  const ran: string[] = [];
  const until = (name: string) => async (signal: AbortSignal) => {
    ran.push(name);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    ran.push(`${name} ended`);
  };
  const duties = [duty(true, until('limits')), duty(false, until('retention'))];
  await rest({ store: storeThatSays(true, true, false), clock, log, duties }, leader, new AbortController().signal);
  expect(ran).toEqual(['limits', 'limits ended']);

  const lost = fault('LEADERSHIP_LOST', 'renew', 'another leads');
  const failing = [duty(true, () => Promise.reject(lost))];
  await expect(
    rest({ store: storeThatSays(true), clock, log, duties: failing }, leader, new AbortController().signal),
  ).rejects.toBe(lost);
});
