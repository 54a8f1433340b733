import type { RelayStatus } from '../http/status-view.ts';
import { ageText, countText, shown } from './words.ts';

/** Rows of each outbox by what they wait for. */
export function Waiting({ status }: { readonly status: RelayStatus }) {
  const { outboxes, limits } = status;
  const over = new Map(limits.map((limit) => [limit.outbox, limit]));
  return (
    <section class="card wide" aria-labelledby="waiting-title">
      <h2 id="waiting-title">Outboxes</h2>
      {outboxes === null && <p class="quiet">The database has not been looked at yet.</p>}
      {outboxes !== null && (
        <table role="table">
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">Table</th>
              {['Pending', 'Oldest', 'Delayed', 'Claimed', 'Failed'].map((title) => (
                <th role="columnheader" class="number" key={title}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {outboxes.map(({ table, waiting }) => {
              const limit = over.get(table);
              const isOver = limit !== undefined && (limit.overRows || limit.overAge);
              const number = (label: string, text: string) => (
                <td role="cell" data-label={label} class="number" key={label}>
                  {text}
                </td>
              );
              return (
                <tr role="row" key={table}>
                  <th role="rowheader" scope="row" data-label="Table">
                    {shown(table)}
                    {isOver && <span class="bad-text block">over its limit</span>}
                  </th>
                  {waiting === null ? (
                    <td role="cell" class="quiet" colSpan={5}>
                      its rows have no state
                    </td>
                  ) : (
                    [
                      number('Pending', countText(waiting.pendingRows)),
                      number('Oldest', waiting.oldestPendingMs === null ? '–' : ageText(waiting.oldestPendingMs)),
                      number(
                        'Delayed',
                        waiting.nextDelayedInMs === null
                          ? countText(waiting.delayedRows)
                          : `${countText(waiting.delayedRows)}, next in ${ageText(waiting.nextDelayedInMs)}`,
                      ),
                      number('Claimed', countText(waiting.processingRows)),
                      number('Failed', countText(waiting.failedRows)),
                    ]
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </section>
  );
}
