import type { RelayStatus } from '../http/status-view.ts';
import { Command } from './command.tsx';
import { ageText, bytesText } from './words.ts';

const DAY_MS = 86_400_000;

/** How long the relay may stand still before the server throws away what it has not read. */
export function Purge({ status }: { readonly status: RelayStatus }) {
  const { purge } = status;
  return (
    <section class="card" aria-labelledby="purge-title">
      <h2 id="purge-title">Purge headroom</h2>
      {purge === null ? (
        <p class="empty">Not known: there is no position yet, or the user may not ask.</p>
      ) : (
        <>
          <p class={purge.inMs !== null && purge.inMs < DAY_MS ? 'figure bad-text' : 'figure'}>
            {purge.inMs === null ? 'no end' : ageText(purge.inMs)}
          </p>
          <p>
            {purge.inMs === null
              ? 'The server keeps its binlog for ever, or does not say for how long.'
              : purge.inMs === 0
                ? 'The server may purge the binlog that the relay still needs, at any time.'
                : `until the server may purge the binlog that holds the checkpoint, at the earliest${
                    purge.expireMs === null ? '' : `; a full one is kept for ${ageText(purge.expireMs)}`
                  }.`}
          </p>
          <p class="quiet">
            {purge.behindBytes === null ? '' : `${bytesText(purge.behindBytes)} from the checkpoint to the head. `}
            {purge.keptBytes === null ? '' : `${bytesText(purge.keptBytes)} of older binlogs go first.`}
          </p>
        </>
      )}
      <Command line="cdc-relay status" />
    </section>
  );
}
