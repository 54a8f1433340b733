import type { ParkedList } from '../http/parked-view.ts';
import { Command } from './command.tsx';
import { Count } from './failed.tsx';
import type { View } from './relay-watch.ts';
import { ageText, countText, shown } from './words.ts';

type Scope = ParkedList['parked'][number];

/** What waits for its own reason, while all else goes on. */
export function Parked({ view }: { readonly view: View }) {
  const { list, why } = view.parked;
  const known = Object.values(view.status?.term?.parked ?? {}).reduce((sum, count) => sum + count, 0);
  const scopes = list?.parked ?? [];
  return (
    <section class={scopes.length > 0 ? 'card wide' : 'card'} aria-labelledby="parked-title">
      <h2 id="parked-title">
        Parked <Count count={list === null || list.more ? known : scopes.length} />
      </h2>
      {why !== null && <p class="bad-text">It cannot be listed: {shown(why)}.</p>}
      {why === null && list === null && known > 0 && <p class="quiet">Asking for it …</p>}
      {scopes.length === 0 && (list !== null || known === 0) && (
        <p class="empty">Nothing is waiting: nothing is parked.</p>
      )}
      {scopes.length > 0 && (
        <>
          <table role="table">
            <thead role="rowgroup">
              <tr role="row">
                <th role="columnheader">What</th>
                <th role="columnheader">Reason</th>
                <th role="columnheader" class="number">
                  For
                </th>
                <th role="columnheader" class="number">
                  Tries
                </th>
                <th role="columnheader" class="number">
                  Next try
                </th>
                <th role="columnheader" class="number">
                  Rows wait
                </th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              {scopes.map((scope, n) => (
                <ScopeRow key={n} scope={scope} />
              ))}
            </tbody>
          </table>
          <p class="quiet">
            {list?.more === true ? 'There are more. ' : ''}What has a next try is tried again by itself, later and
            later; once the cause is gone its rows go on in order. <Command line="cdc-relay status" />
          </p>
        </>
      )}
    </section>
  );
}

function ScopeRow({ scope }: { readonly scope: Scope }) {
  const { reason, sinceMs, attempts, rowsWaiting } = scope;
  return (
    <tr role="row">
      <th role="rowheader" scope="row" data-label="What">
        {nameOf(scope)}
      </th>
      <td role="cell" data-label="Reason" class="error">
        {shown(reason)}
      </td>
      <td role="cell" data-label="For" class="number">
        {ageText(sinceMs)}
      </td>
      <td role="cell" data-label="Tries" class="number">
        {countText(attempts)}
      </td>
      <td role="cell" data-label="Next try" class="number">
        {nextText(scope)}
      </td>
      <td role="cell" data-label="Rows wait" class="number">
        {rowsWaiting === null ? 'not counted' : countText(rowsWaiting)}
      </td>
    </tr>
  );
}

function nextText({ reason, dueInMs, row }: Scope): string {
  if (dueInMs !== null) return dueInMs === 0 ? 'now' : `in ${ageText(dueInMs)}`;
  // Its rows are being sent again, and the live ones wait for them.
  if (reason === 'REPLAY') return 'once the job is through with it';
  return row === null ? 'when somebody acts' : `when row ${shown(row.id)} is dealt with`;
}

function nameOf({ kind, topic, partition, key }: Scope) {
  if (kind === 'everything') return 'Everything';
  const name = topic === null ? 'all topics' : topic === '' ? '(no topic)' : shown(topic);
  const part =
    kind === 'pair' ? shown(key ?? '(no aggregate)') : kind === 'topic' ? 'the whole topic' : `partition ${partition}`;
  return (
    <>
      {name}
      <span class="quiet block">{part}</span>
    </>
  );
}
