import { expect, test } from 'vitest';
import { EVENTS, type LoggedEvent } from '../../../src/observability/events.ts';
import { eventsPage } from './events-page.ts';
import { logCalls } from './logged-events.ts';

const known = Object.values(EVENTS).flatMap((events) => Object.entries<LoggedEvent>(events));
const calls = logCalls();

test('docs/events.md says what there is', async () => {
  await expect(await eventsPage()).toMatchFileSnapshot('../../../docs/events.md');
});

test('every event that is logged is in src/observability/events.ts, at its level and with its fields', () => {
  expect(calls.length).toBeGreaterThan(60);
  const missing = calls.flatMap(({ event, levels, fields, where }) => {
    const wrong = known
      .filter(([name]) => event.test(name))
      .map(([name, { level, fields: told }]) => [
        ...levels
          .filter((each) => !([level].flat() as string[]).includes(each))
          .map((each) => `${name} at level ${each}`),
        ...fields
          .filter((each) => !told.includes(each) && !told.includes(`${each}?`))
          .map((each) => `${name} has ${each}`),
      ]);
    // Of names that are put together while the program runs some other may be meant.
    if (wrong.some((each) => each.length === 0)) return [];
    return [`${where}: ${wrong.length === 0 ? `no ${event.source}` : wrong.flat().join(', ')}`];
  });
  expect(missing).toEqual([]);
});

test('and every event that is there is logged, once, in words', () => {
  const names = known.map(([name]) => name);
  expect(names.filter((name) => !calls.some(({ event }) => event.test(name)))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
  for (const [name, { when }] of known) {
    expect(name).toMatch(/^[a-z]+(?:-[a-z]+)*$/);
    expect(when).toMatch(/^[A-Z`].{8,}\.$/);
  }
});
