import type { StateTone } from './states.ts';

/** A shape for each tone, so that no color has to be seen: check, triangle, octagon, ring, bars. */
export function Icon({ tone }: { readonly tone: StateTone }) {
  return (
    <svg class={`icon tone-${tone}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      {tone === 'good' && <circle cx="12" cy="12" r="11" class="body" />}
      {tone === 'good' && <path d="M6.7 12.4l3.6 3.6 7-7.6" class="ink" />}
      {tone === 'busy' && <path d="M12 1.8L23 21.5H1z" class="body" />}
      {tone === 'busy' && <path d="M12 9v6M12 17.6v1.2" class="ink" />}
      {tone === 'bad' && <path d="M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9z" class="body" />}
      {tone === 'bad' && <path d="M12 6v7.6M12 16.8v1.4" class="ink" />}
      {tone === 'calm' && <circle cx="12" cy="12" r="9" class="ring" />}
      {tone === 'off' && <path d="M4 3h6v18H4zM14 3h6v18h-6z" class="body" />}
    </svg>
  );
}
