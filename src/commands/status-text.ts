import { isMost, type StatusReport } from './status-report.ts';
import { ageText, bytesText, countText, escapedText } from './text.ts';

/** How what is printed is to look. */
export interface TextStyle {
  /** Nothing but ASCII: for pipes. */
  readonly ascii: boolean;
  /** Of the terminal; undefined: lines are as long as they are. */
  readonly columns: number | undefined;
}

const LABEL = 10;
const GAP = '   ';
/** Parked scopes that are shown. */
const SHOWN_SCOPES = 5;

/** The verdict first, then the facts, then what to do. Everything that came from outside is escaped. */
export function statusText(report: StatusReport, style: TextStyle): string {
  const safe = (text: string): string => escapedText(text, style.ascii);
  const arrow = style.ascii ? '->' : '→';
  const facts: Fact[] = [
    verdict(report, safe),
    ...report.passed.map((passed): Fact => ['passed', [passed]]),
    ...report.stuck.map(({ part, detail, stuckMs }): Fact => {
      return ['stuck', [`${part}${detail === null ? '' : ` ${safe(detail)}`} for ${ageText(stuckMs)}`]];
    }),
    ...(report.server.uuid === null ? [] : database(report, safe, arrow)),
    ...last(report, safe),
  ];
  return facts.map((fact) => line(fact, style.columns)).join('\n');
}

/** `gap`: what stands between its parts where they are on one line; default: spaces. */
type Fact = readonly [label: string, parts: readonly string[], gap?: string];
type Safe = (text: string) => string;

function verdict({ state, name, server, leader, standbys }: StatusReport, safe: Safe): Fact {
  const version = server.version === null ? '' : ` (${safe(server.version)})`;
  const at = `${safe(name)} on ${safe(server.address)}${version}`;
  if (server.uuid === null) return [state, [`${at}: the database cannot be reached`]];
  const up = leader?.upMs == null ? '' : ` (up ${ageText(leader.upMs)})`;
  const leads = leader === null ? 'no leader' : `leader ${safe(leader.owner)}${up}, epoch ${countText(leader.epoch)}`;
  const others = standbys === null ? [] : [standbys === 0 ? 'no standby' : plural(standbys, 'standby')];
  return [state, [at, leads, ...others], ', '];
}

/** What the database says. */
function database(report: StatusReport, safe: Safe, arrow: string): Fact[] {
  const { paused, outboxes, jobs } = report;
  const facts: Fact[] = [];
  if (paused !== null) {
    facts.push(['paused', [`${ageText(paused.sinceMs)} ago by ${safe(paused.by)}`, `${arrow} cdc-relay resume`]]);
  }
  facts.push(lag(report), places(report, safe), ...purge(report), ...rate(report));
  for (const { table, waiting } of outboxes) facts.push(['outbox', [safe(table), ...waitingParts(waiting)]]);
  facts.push(...parked(report, safe, arrow), ...failed(report, safe, arrow));
  for (const job of jobs) facts.push(['job', jobParts(job, arrow)]);
  return facts;
}

function lag({ lagMs, outboxes, behindBytes }: StatusReport): Fact {
  const known = outboxes.flatMap(({ waiting }) => (waiting === null ? [] : [waiting]));
  const age = lagMs === null ? (known.length === 0 ? 'unknown (no status column)' : 'unknown') : ageText(lagMs);
  const most = known.some(({ pending }) => isMost(pending));
  const pending = known.reduce((sum, each) => sum + each.pending, 0);
  const rows = `${countText(pending)}${most ? '+' : ''} ${pending === 1 ? 'row' : 'rows'}`;
  return ['lag', [`${age}, ${rows}, ${behindBytes === null ? 'unknown' : bytesText(behindBytes)} of binlog`]];
}

function places({ checkpoint, head }: StatusReport, safe: Safe): Fact {
  const at = ({ file, offset }: { file: string; offset: number }): string => `${safe(file)}:${countText(offset)}`;
  const saved = checkpoint === null ? 'none yet' : `${at(checkpoint)} (saved ${ageText(checkpoint.savedMsAgo)} ago)`;
  return ['position', [`checkpoint ${saved}`, `head ${head === null ? 'unknown' : at(head)}`], ', '];
}

function purge({ purge: facts, checkpoint }: StatusReport): Fact[] {
  if (checkpoint === null) return [];
  if (facts === null) return [['purge', ['unknown']]];
  const { inMs, expireMs, keptBytes } = facts;
  if (inMs === 0 && keptBytes === null) return [['purge', ["the checkpoint's binlog is gone"]]];
  const older = keptBytes === null ? '' : `, ${bytesText(keptBytes)} of older binlogs go first`;
  if (inMs !== null) return [['purge', [`in ${ageText(inMs)} at the earliest${older}`]]];
  return [['purge', [expireMs === null ? 'never by age' : 'unknown']]];
}

function rate({ rate: rows }: StatusReport): Fact[] {
  if (rows === null) return [];
  const perSecond = (rate: number): string => (rate > 0 && rate < 10 ? rate.toFixed(1) : countText(Math.round(rate)));
  return [
    ['rate', [`${perSecond(rows.nowRowsPerSecond)} rows/s now, ${perSecond(rows.over15MinRowsPerSecond)} over 15 min`]],
  ];
}

function waitingParts(waiting: StatusReport['outboxes'][number]['waiting']): string[] {
  if (waiting === null) return ['no status column'];
  const { pending, oldestPendingMs, delayed, nextDelayedInMs, processing, failed } = waiting;
  return [
    `pending ${counted(pending)}${oldestPendingMs === null ? '' : ` (oldest ${ageText(oldestPendingMs)})`}`,
    `delayed ${counted(delayed)}${nextDelayedInMs === null ? '' : ` (next in ${ageText(nextDelayedInMs)})`}`,
    ...(processing === 0 ? [] : [`claimed ${counted(processing)}`]),
    `failed ${counted(failed)}`,
  ];
}

function parked({ parked: { total, scopes } }: StatusReport, safe: Safe, arrow: string): Fact[] {
  const shown = scopes.slice(0, SHOWN_SCOPES);
  const facts = shown.map((scope, index): Fact => {
    const { reason, sinceMs, dueInMs, row, rowsWaiting } = scope;
    const next =
      dueInMs !== null
        ? dueInMs === 0
          ? 'is tried now'
          : `next try in ${ageText(dueInMs)}`
        : `until somebody acts ${arrow} cdc-relay failed show${row === null ? '' : ` ${safe(row.id)} --outbox ${safe(row.outbox)}`}`;
    const rows =
      rowsWaiting === null ? [] : [`${countText(rowsWaiting)} ${rowsWaiting === 1 ? 'row waits' : 'rows wait'}`];
    return [
      index === 0 ? 'parked' : '',
      [scopeText(scope, safe), `for ${ageText(sinceMs)}`, safe(reason), next, ...rows],
    ];
  });
  if (total > shown.length) facts.push(['', [`and ${countText(total - shown.length)} more`]]);
  return facts;
}

function scopeText({ kind, topic, partition, key }: StatusReport['parked']['scopes'][number], safe: Safe): string {
  if (kind === 'everything' || topic === null) return 'everything';
  const name = topic === '' ? '(no topic)' : safe(topic);
  if (kind === 'topic') return `topic ${name}`;
  return kind === 'pair' ? `${name} / ${safe(key ?? '')}` : `${name}/${partition ?? '?'}`;
}

function failed({ outboxes }: StatusReport, safe: Safe, arrow: string): Fact[] {
  const known = outboxes.flatMap(({ waiting }) => (waiting === null || waiting.failed === 0 ? [] : [waiting]));
  if (known.length === 0) return [];
  const rows = known.reduce((sum, each) => sum + each.failed, 0);
  const most = known.some((each) => isMost(each.failed)) ? '+' : '';
  const newest = known.toSorted((a, b) => (a.newestFailedMs ?? Infinity) - (b.newestFailedMs ?? Infinity))[0];
  const age = newest.newestFailedMs === null ? '' : `, the last one due ${ageText(newest.newestFailedMs)} ago`;
  const code = newest.newestFailedCode === null ? '' : `: ${safe(newest.newestFailedCode)}`;
  return [
    [
      'failed',
      [`${countText(rows)}${most} ${rows === 1 ? 'row' : 'rows'}${age}${code}`, `${arrow} cdc-relay failed list`],
    ],
  ];
}

function jobParts(
  { id, kind, state, done, total, startedMsAgo }: StatusReport['jobs'][number],
  arrow: string,
): string[] {
  const part = total === null || total === 0 || done === null ? '' : ` (${Math.floor((100 * done) / total)} %)`;
  return [
    `${id} ${kind} ${state}`,
    ...(done === null ? [] : [`${countText(done)} of ${total === null ? '?' : countText(total)} rows${part}`]),
    ...(startedMsAgo === null ? [] : [`for ${ageText(startedMsAgo)}`]),
    `${arrow} cdc-relay resync show ${id}`,
  ];
}

/** What the relay says beside it, and what to do. */
function last(report: StatusReport, safe: Safe): Fact[] {
  const { limits, lastError, relay, state } = report;
  const facts = limits.map(({ outbox, overRows, overAge }): Fact => {
    const what = [...(overRows ? ['rows'] : []), ...(overAge ? ['age'] : [])];
    return ['limit', [`${safe(outbox)} is over its limit of ${what.join(' and ')}`]];
  });
  if (lastError !== null)
    facts.push(['error', [`the last one ${ageText(lastError.agoMs)} ago: ${safe(lastError.code)}`]]);
  const says = relayText(report, safe);
  if (says !== null) facts.push(['relay', [says]]);
  if (state === 'STOPPED' && relay.as !== 'not-leading') facts.push(['next', ['cdc-relay run']]);
  return facts;
}

/** Null: nothing is missing. */
function relayText({ relay, leader, server }: StatusReport, safe: Safe): string | null {
  const address = safe(relay.address ?? '');
  const alone = server.uuid === null ? '' : "; the rest is the database's word";
  switch (relay.as) {
    case 'leader':
      return relay.detail === null ? null : `the leader at ${address} says ${relay.detail}`;
    case 'standby':
      return `the one at ${address} stands by${alone}`;
    case 'not-leading':
      return `the one at ${address} runs and does not lead${relay.detail === null ? '' : ` (${safe(relay.detail)})`}`;
    case 'unclear':
      return `what listens at ${address} ${safe(relay.detail ?? '')}${alone}`;
    case 'off':
      return leader === null ? null : `it listens nowhere (http.port is 0): this is the database's word alone`;
    case 'absent':
      if (leader === null) return null;
      return `nobody listens at ${address}, the leader may be on another machine: this is the database's word alone`;
  }
}

/** One fact; where the terminal ends its parts go on below. */
function line([label, parts, gap = GAP]: Fact, columns: number | undefined): string {
  const lines: string[] = [];
  let at = '';
  for (const part of parts) {
    const longer = at === '' ? part : `${at}${gap}${part}`;
    if (at !== '' && columns !== undefined && LABEL + longer.length > columns) {
      lines.push(`${at}${gap.trimEnd()}`);
      at = part;
    } else {
      at = longer;
    }
  }
  const indent = ' '.repeat(LABEL);
  const first = label.length < LABEL ? label.padEnd(LABEL) : `${label} `;
  return [...lines, at].map((text, index) => `${index === 0 ? first : indent}${text}`).join('\n');
}

function counted(count: number): string {
  return `${countText(count)}${isMost(count) ? '+' : ''}`;
}

function plural(count: number, word: string): string {
  return `${countText(count)} ${word}${count === 1 ? '' : 's'}`;
}
