import { toneOf } from './states.ts';

const COLORS = { good: '#1a7f4b', busy: '#b26a00', bad: '#c62828', calm: '#2563a8', off: '#6b7280' };

/** The state in the title and the icon of the tab: one of many that are open. */
export function showInTab(state: string, relay: string | null): void {
  document.title = `${state} ${relay === null ? '' : `· ${relay} `}· cdc-relay`;
  const tone = toneOf(state);
  const shape =
    tone === 'bad'
      ? '<path d="M5 0h6l5 5v6l-5 5H5l-5-5V5z"/>'
      : tone === 'busy'
        ? '<path d="M8 1l8 14H0z"/>'
        : '<circle cx="8" cy="8" r="8"/>';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="${COLORS[tone]}">${shape}</svg>`;
  document.querySelector<HTMLLinkElement>('link[rel=icon]')!.href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
