import { escapedText } from '../commands/text.ts';

export { ageText, bytesText, countText, rowsText } from '../commands/text.ts';

/** Text that somebody else wrote: what would not be seen, or would turn what follows around, as escapes. */
export function shown(text: string): string {
  return escapedText(text, false);
}

/** `18:40:12 UTC`, with its date where that is not today's. */
export function utcText(ms: number, nowMs = Date.now()): string {
  const [date, time] = new Date(ms).toISOString().split('T');
  const isToday = date === new Date(nowMs).toISOString().slice(0, 10);
  return `${isToday ? '' : `${date} `}${time.slice(0, 8)} UTC`;
}

/** What a chart says in words: its last value, and its greatest. Null: not known, or not this relay's. */
export function nowAndMost(values: readonly (number | null)[], text: (value: number) => string): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return values.length === 0 ? 'Nothing is known yet.' : 'Nothing is known.';
  const last = values.at(-1) ?? null;
  return `${last === null ? 'not known' : text(last)} now, ${text(Math.max(...known))} at most`;
}

/** One word of a shell, whatever is in it. */
export function shellWord(text: string): string {
  return /^[\w.,:@%+/][\w.,:@%+/-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** What does with these rows what a button does. `outbox` where there are several. */
export function failedCommand(action: 'retry' | 'discard', id: string, outbox: string | null): string {
  const of = outbox === null ? '' : ` --outbox ${shellWord(outbox)}`;
  return `cdc-relay failed ${action}${of} ${id.startsWith('-') ? '-- ' : ''}${shellWord(id)}`;
}
