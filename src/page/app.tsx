import { useEffect } from 'preact/hooks';
import { whyNot } from './acting.ts';
import { Charts } from './charts.tsx';
import { Failed } from './failed.tsx';
import { Footer } from './footer.tsx';
import { Header } from './header.tsx';
import { Jobs } from './jobs.tsx';
import { Parked } from './parked.tsx';
import { Pause } from './pause.tsx';
import { Picture } from './picture.tsx';
import { Purge } from './purge.tsx';
import type { RelayWatch, View } from './relay-watch.ts';
import { showInTab } from './tab.ts';
import { TokenForm } from './token-form.tsx';
import { useNow, useView } from './use-view.ts';
import { Waiting } from './waiting.tsx';
import { ageText, shown, utcText } from './words.ts';

export function App({ watch }: { readonly watch: RelayWatch }) {
  const view = useView(watch);
  const { status, locked, lost, note } = view;
  const state = lost !== null ? 'NO ANSWER' : (status?.state ?? locked?.state ?? 'ASKING');
  const reason = whyNot(view);
  useEffect(() => showInTab(state, status?.relay ?? null), [state, status?.relay]);
  return (
    <>
      {lost !== null && <Lost {...lost} view={view} />}
      <div class={lost !== null ? 'page stale' : 'page'}>
        <Header state={state} status={status} lastMs={lost === null ? null : view.statusAtMs} />
        <p class={note === null ? 'note' : note.isBad ? 'note bad' : 'note good'} role="status">
          {note === null ? '' : shown(note.text)}
        </p>
        <main>
          <TokenForm view={view} watch={watch} />
          {status !== null && (
            <>
              <Picture status={status} atMs={view.statusAtMs} />
              <Charts history={view.history} aheadMs={view.aheadMs} />
              <section aria-labelledby="people-title">
                <h2 id="people-title">What needs somebody</h2>
                {reason !== null && <p class="quiet why-not">{reason}</p>}
                <div class="cards">
                  <Failed view={view} watch={watch} />
                  <Parked view={view} />
                  <Jobs view={view} watch={watch} />
                  <Purge status={status} />
                  <Pause view={view} watch={watch} />
                  <Waiting status={status} />
                </div>
              </section>
            </>
          )}
        </main>
        {status !== null && <Footer view={view} status={status} watch={watch} />}
      </div>
    </>
  );
}

function Lost({ sinceMs, why, view }: { readonly sinceMs: number; readonly why: string; readonly view: View }) {
  const now = useNow() + view.aheadMs;
  return (
    <div class="lost" role="alert">
      <b>No answer from the relay since {utcText(sinceMs)}</b>
      <span>
        {' '}
        ({ageText(Math.max(0, now - sinceMs))} ago): {why}.{' '}
        {view.status === null ? 'Nothing is known of it.' : 'What is shown below is from before.'}
      </span>
    </div>
  );
}
