import type { RelayStatus } from '../http/status-view.ts';
import { Command } from './command.tsx';
import { Icon } from './icon.tsx';
import { type Place, placesIn } from './picture-places.ts';
import { type Part, partsOf } from './pipeline.ts';
import { useWidth } from './use-view.ts';
import { ageText, utcText } from './words.ts';

/** MySQL, tail and sweep, lanes, Kafka, and the marks that go back; what is stuck is marked in it. */
export function Picture({ status, atMs }: { readonly status: RelayStatus; readonly atMs: number }) {
  const [width, measured] = useWidth();
  const parts = partsOf(status);
  const { places, edges, heightPx } = placesIn(width);
  const toneFor = (id: string): string => parts.find((part) => part.id === id)!.tone;
  return (
    <section aria-labelledby="pipeline-title">
      <h2 id="pipeline-title">Pipeline</h2>
      <div class="picture" ref={measured} style={{ height: `${heightPx}px` }}>
        <svg width={width} height={heightPx} aria-hidden="true" focusable="false">
          {edges.map(({ from, to, path, tip }) => {
            const tone = [toneFor(from), toneFor(to)];
            const kind = tone.includes('stuck') ? 'stuck' : tone.includes('off') ? 'off' : toneFor(to);
            return (
              <g key={`${from}-${to}`} class={`edge ${kind}`}>
                <path d={path} class="line" />
                <path d={tip} class="tip" />
              </g>
            );
          })}
        </svg>
        <ul aria-label="The parts, in the order in which a row passes them">
          {parts.map((part) => (
            <PartBox key={part.id} part={part} place={places[part.id]} />
          ))}
        </ul>
      </div>
      {parts.map(({ id, title, stuck }) =>
        stuck === null ? null : (
          <div key={id} class="stuck-note">
            <h3>
              {title}: stuck for {ageText(stuck.forMs)}
            </h3>
            <p>
              Since {utcText(atMs - stuck.forMs)}. Cause: <code>{stuck.cause}</code>. {stuck.effect}
            </p>
            <p>
              Find out more: <Command line={stuck.command} />
            </p>
          </div>
        ),
      )}
    </section>
  );
}

function PartBox({ part, place }: { readonly part: Part; readonly place: Place }) {
  const { x, y, w, h } = place;
  const { title, number, unit, tone, stuck } = part;
  return (
    <li
      class={`part ${tone}`}
      data-part={part.id}
      style={{ left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${h}px` }}
    >
      <span class="part-title">
        {title}
        {stuck !== null && (
          <span class="part-mark">
            <Icon tone="bad" /> stuck
          </span>
        )}
      </span>
      <span class="part-number">{number}</span> <span class="part-unit">{unit}</span>
      {stuck !== null && (
        <span class="part-cause" title={stuck.cause}>
          {stuck.cause}, {ageText(stuck.forMs)}
        </span>
      )}
    </li>
  );
}
