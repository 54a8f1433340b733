import { expect, test } from 'vitest';
import { statusView } from '../../../src/http/status-view.ts';
import { History } from '../../../src/observability/history.ts';
import { Looked, OUTBOXES, termAt } from '../observability/sources.ts';

test('a leader that was looked at before this relay took over is not named: it is known to lead no more', async () => {
  const looked = new Looked();
  const { observer } = looked;
  const clock = { nowMs: () => looked.nowMs, after: () => () => undefined };
  const leader = () => {
    return statusView({ relay: 'orders', outboxes: OUTBOXES, observer, history: new History(), clock }).leader;
  };
  looked.flows(termAt(0));
  looked.database = { leader: { owner: 'other:1', epoch: 2 } };
  await looked.after(1);
  expect(leader()).toBeNull();
  looked.database = { leader: { owner: 'this:1', epoch: 3 } };
  await looked.after(1);
  expect(leader()).toEqual({ owner: 'this:1', epoch: 3, isThis: true });
  looked.database = { leader: { owner: 'other:1', epoch: 4 } };
  await looked.after(1);
  expect(leader()).toEqual({ owner: 'other:1', epoch: 4, isThis: false });
});
