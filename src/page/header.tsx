import type { RelayStatus } from '../http/status-view.ts';
import { Icon } from './icon.tsx';
import { sentenceOf, toneOf } from './states.ts';
import { ageText, countText, shown, utcText } from './words.ts';

interface Props {
  readonly state: string;
  readonly status: RelayStatus | null;
  /** When the status was told; not null once nobody answers. */
  readonly lastMs: number | null;
}

/** The verdict first, then the facts. */
export function Header({ state, status, lastMs }: Props) {
  const tone = toneOf(state);
  return (
    <header class={`verdict tone-${tone}`}>
      <div class="state">
        <Icon tone={tone} />
        <div>
          <h1>
            <span class="name">{status === null ? 'cdc-relay' : shown(status.relay)}</span>
            <span class="word" role="status" aria-live="polite">
              {state}
            </span>
          </h1>
          {status !== null && (
            <p class="sentence">
              {lastMs === null ? sentenceOf(status) : `What is known is from ${utcText(lastMs)}: ${status.state}.`}
            </p>
          )}
          {status !== null && lastMs === null && !status.ready && status.notReady.length > 0 && (
            <p class="not-ready">
              Not ready: <b>{status.notReady.join(', ')}</b>
            </p>
          )}
        </div>
      </div>
      {status !== null && <Facts status={status} />}
    </header>
  );
}

function Facts({ status }: { readonly status: RelayStatus }) {
  const { lagMs, rate, leader, standbys, upMs } = status;
  return (
    <dl class="facts">
      <div>
        <dt>Lag</dt>
        <dd class="big">{lagMs === null ? '–' : ageText(lagMs)}</dd>
        <dd class="small">{lagMs === null ? 'not this relay’s to deliver' : 'commit to Kafka'}</dd>
      </div>
      <div>
        <dt>Rate</dt>
        <dd class="big">
          {countText(rate.nowRowsPerSecond)} <span class="unit">rows/s</span>
        </dd>
        <dd class="small">{countText(rate.over15MinRowsPerSecond)} over 15 min</dd>
      </div>
      <div>
        <dt>Leader</dt>
        <dd class="big owner">{leader === null ? 'not known' : leader.isThis ? 'this relay' : shown(leader.owner)}</dd>
        <dd class="small">
          {leader === null
            ? 'nobody, or nobody can say'
            : `epoch ${countText(leader.epoch)}${leader.isThis ? `, ${shown(leader.owner)}` : ''}`}
        </dd>
      </div>
      <div>
        <dt>Standbys</dt>
        <dd class="big">{standbys === null ? '–' : countText(standbys)}</dd>
        <dd class="small">{standbys === null ? 'may not be asked' : `this one is up for ${ageText(upMs)}`}</dd>
      </div>
    </dl>
  );
}
