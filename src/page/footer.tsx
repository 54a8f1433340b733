import type { RelayStatus } from '../http/status-view.ts';
import type { RelayWatch, View } from './relay-watch.ts';
import { ageText, countText, shown, utcText } from './words.ts';

interface Props {
  readonly view: View;
  readonly status: RelayStatus;
  readonly watch: RelayWatch;
}

export function Footer({ view, status, watch }: Props) {
  const { relay, pid, head, term, lastError, rows } = status;
  const place = (at: { readonly file: string; readonly offset: number } | null): string =>
    at === null ? 'not known' : `${shown(at.file)}:${countText(at.offset)}`;
  return (
    <footer>
      <dl>
        <div>
          <dt>Relay</dt>
          <dd>
            {shown(relay)}, process {pid}
          </dd>
        </div>
        <div>
          <dt>Checkpoint</dt>
          <dd>{place(term?.checkpoint ?? null)}</dd>
        </div>
        <div>
          <dt>Head</dt>
          <dd>{place(head)}</dd>
        </div>
        <div>
          <dt>Since its start</dt>
          <dd>
            {countText(rows.byTail + rows.bySweep)} rows sent, {countText(rows.retried)} retried,{' '}
            {countText(rows.failed)} failed
          </dd>
        </div>
        <div>
          <dt>Last error</dt>
          <dd>{lastError === null ? 'none' : `${lastError.code}, ${ageText(lastError.agoMs)} ago`}</dd>
        </div>
      </dl>
      <p class="quiet">
        As of {utcText(view.statusAtMs)}, asked for every 2 s. The same in a terminal:{' '}
        <code>cdc-relay status --watch</code>
        {view.hasToken && (
          <>
            {' '}
            <button type="button" class="link" onClick={() => watch.setToken(null)}>
              Forget the token
            </button>
          </>
        )}
      </p>
    </footer>
  );
}
