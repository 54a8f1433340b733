import { useState } from 'preact/hooks';
import type { ReportedRow } from '../http/failed-view.ts';
import { whyNot } from './acting.ts';
import { Command } from './command.tsx';
import { Confirm } from './dialog.tsx';
import type { RelayWatch, View } from './relay-watch.ts';
import { ageText, countText, failedCommand, shown } from './words.ts';

interface Props {
  readonly view: View;
  readonly watch: RelayWatch;
}

/** Rows that Kafka refused for good: somebody has to say what becomes of them. */
export function Failed({ view, watch }: Props) {
  const { list, why } = view.failed;
  const outboxes = view.status?.outboxes ?? [];
  const count = outboxes.reduce((sum, { waiting }) => sum + (waiting?.failedRows ?? 0), 0);
  const rows = list?.rows ?? [];
  const reason = whyNot(view);
  return (
    <section class={rows.length > 0 ? 'card wide' : 'card'} aria-labelledby="failed-title">
      <h2 id="failed-title">
        Failed rows <Count count={list === null || list.more ? count : rows.length} />
      </h2>
      {why !== null && <p class="bad-text">They cannot be listed: {shown(why)}.</p>}
      {why === null && list === null && count > 0 && <p class="quiet">Asking for them …</p>}
      {rows.length === 0 && (list !== null || count === 0) && (
        <p class="empty">Nothing is waiting: no row has failed.</p>
      )}
      {rows.length > 0 && (
        <>
          <table role="table">
            <thead role="rowgroup">
              <tr role="row">
                <th role="columnheader">Row</th>
                <th role="columnheader">Topic / aggregate</th>
                <th role="columnheader">Error</th>
                <th role="columnheader" class="number">
                  Attempts
                </th>
                <th role="columnheader" class="number">
                  Age
                </th>
                <th role="columnheader">Act</th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              {rows.map((row) => (
                <FailedRow
                  key={`${row.outbox} ${row.id}`}
                  {...{ row, watch }}
                  isOne={outboxes.length <= 1}
                  reason={reason}
                />
              ))}
            </tbody>
          </table>
          <p class="quiet">
            {list?.more === true ? 'These are the last ones of more. ' : ''}All of them at once:{' '}
            <Command line="cdc-relay failed retry --all" />
          </p>
        </>
      )}
    </section>
  );
}

interface RowProps {
  readonly row: ReportedRow;
  readonly watch: RelayWatch;
  /** There is one outbox: nobody needs its name. */
  readonly isOne: boolean;
  readonly reason: string | null;
}

function FailedRow({ row, watch, isOne, reason }: RowProps) {
  const [isAsked, setAsked] = useState(false);
  const [isUnderWay, setUnderWay] = useState(false);
  const { outbox, id, topic, key, error, attempts, ageMs } = row;
  const act = async (action: 'retry' | 'discard'): Promise<void> => {
    setUnderWay(true);
    await watch.act(action, outbox, id);
    setUnderWay(false);
  };
  const line = failedCommand('retry', id, isOne ? null : outbox);
  const isOff = reason !== null || isUnderWay;
  return (
    <tr role="row">
      <th role="rowheader" scope="row" data-label="Row">
        {shown(id)}
        {!isOne && <span class="quiet block">{shown(outbox)}</span>}
      </th>
      <td role="cell" data-label="Topic">
        {topic === null ? '(no topic)' : shown(topic)}
        <span class="quiet block">{key === null ? '(no aggregate)' : shown(key)}</span>
      </td>
      <td role="cell" data-label="Error" class="error">
        {error === null ? '–' : shown(error)}
      </td>
      <td role="cell" data-label="Attempts" class="number">
        {countText(attempts)}
      </td>
      <td role="cell" data-label="Age" class="number">
        {ageMs === null ? '–' : ageText(ageMs)}
      </td>
      <td role="cell" data-label="Act" class="act">
        <div class="buttons">
          <button
            type="button"
            disabled={isOff}
            onClick={() => void act('retry')}
            aria-label={`Retry row ${shown(id)}`}
          >
            Retry
          </button>
          <button
            type="button"
            class="plain"
            disabled={isOff}
            onClick={() => setAsked(true)}
            aria-label={`Discard row ${shown(id)}`}
          >
            Discard …
          </button>
        </div>
        <Command line={line} />
        {isAsked && (
          <Confirm
            title={`Discard row ${shown(id)}?`}
            keep="Keep it"
            go="Discard it"
            onGo={() => void act('discard')}
            onClose={() => setAsked(false)}
          >
            <p>
              It is deleted from <code>{shown(outbox)}</code> and never delivered. Later events of its aggregate that it
              blocks go on. This cannot be undone.
            </p>
            <p class="quiet">
              The same on the command line: <Command line={failedCommand('discard', id, isOne ? null : outbox)} />
            </p>
          </Confirm>
        )}
      </td>
    </tr>
  );
}

export function Count({ count }: { readonly count: number }) {
  return count === 0 ? null : <span class="count">{countText(count)}</span>;
}
