import { useState } from 'preact/hooks';
import { whyNot } from './acting.ts';
import { Command } from './command.tsx';
import { Confirm } from './dialog.tsx';
import type { RelayWatch, View } from './relay-watch.ts';
import { ageText, shown } from './words.ts';

export function Pause({ view, watch }: { readonly view: View; readonly watch: RelayWatch }) {
  const [isAsked, setAsked] = useState(false);
  const paused = view.status?.paused ?? null;
  const reason = whyNot(view);
  return (
    <section class="card" aria-labelledby="pause-title">
      <h2 id="pause-title">Pause</h2>
      {paused === null ? (
        <p class="empty">Nobody has asked for a pause.</p>
      ) : (
        <p>
          Asked for by <b>{shown(paused.by)}</b>, {ageText(paused.sinceMs)} ago. Rows wait in MySQL, and the binlog has
          to be kept for as long.
        </p>
      )}
      <div class="buttons">
        {paused === null ? (
          <button type="button" class="plain" disabled={reason !== null} onClick={() => setAsked(true)}>
            Pause …
          </button>
        ) : (
          <button type="button" disabled={reason !== null} onClick={() => void watch.pause(false)}>
            Resume
          </button>
        )}
        <Command line={paused === null ? 'cdc-relay pause' : 'cdc-relay resume'} />
      </div>
      {isAsked && (
        <Confirm
          title="Pause the relay?"
          keep="Let it run"
          go="Pause it"
          onGo={() => void watch.pause(true)}
          onClose={() => setAsked(false)}
        >
          <p>
            Nothing is read or sent until somebody resumes it, also after a restart. Rows wait in MySQL and none is
            lost, as long as the server keeps its binlog.
          </p>
        </Confirm>
      )}
    </section>
  );
}
