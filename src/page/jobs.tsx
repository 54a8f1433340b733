import { useState } from 'preact/hooks';
import type { RelayStatus } from '../http/status-view.ts';
import { whyNot } from './acting.ts';
import { Command } from './command.tsx';
import { Confirm } from './dialog.tsx';
import { Count } from './failed.tsx';
import type { RelayWatch, View } from './relay-watch.ts';
import { ageText, countText } from './words.ts';

type Job = RelayStatus['jobs'][number];

/** What people have asked the relay to do, and how far it is. */
export function Jobs({ view, watch }: { readonly view: View; readonly watch: RelayWatch }) {
  const jobs = view.status?.jobs ?? [];
  return (
    <section class="card" aria-labelledby="jobs-title">
      <h2 id="jobs-title">
        Jobs <Count count={jobs.length} />
      </h2>
      {jobs.length === 0 && <p class="empty">Nothing is waiting: no job is under way.</p>}
      {jobs.map((job) => (
        <JobItem key={job.id} job={job} watch={watch} reason={whyNot(view)} />
      ))}
    </section>
  );
}

interface Props {
  readonly job: Job;
  readonly watch: RelayWatch;
  readonly reason: string | null;
}

function JobItem({ job, watch, reason }: Props) {
  const [isAsked, setAsked] = useState(false);
  const { id, kind, state, done, total, startedMsAgo } = job;
  const isKnown = done !== null && total !== null && total > 0;
  const far = isKnown
    ? `${countText(done)} of ${countText(total)} rows, ${Math.floor((100 * done) / total)} %`
    : 'rows are looked for';
  const line = `cdc-relay resync cancel ${id}`;
  return (
    <div class="job">
      <h3>
        Job {id}: {kind} <span class="quiet">{state}</span>
      </h3>
      {state === 'running' && isKnown && <progress aria-label={`Job ${id}`} value={done} max={total} />}
      <p>
        {state === 'queued'
          ? 'It waits for its turn.'
          : `${far}${startedMsAgo === null ? '' : `, begun ${ageText(startedMsAgo)} ago`}`}
      </p>
      <div class="buttons">
        <button
          type="button"
          class="plain"
          disabled={reason !== null}
          onClick={() => setAsked(true)}
          aria-label={`Cancel job ${id}`}
        >
          Cancel …
        </button>
        <Command line={line} />
      </div>
      {isAsked && (
        <Confirm
          title={`Cancel job ${id}?`}
          keep="Let it run"
          go="Cancel the job"
          onGo={() => void watch.cancel(id)}
          onClose={() => setAsked(false)}
        >
          <p>What has been sent stays sent. It cannot be taken up again; a new job begins from the start.</p>
        </Confirm>
      )}
    </div>
  );
}
