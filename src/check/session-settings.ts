import type { Settings } from '../model/settings.ts';
import type { Session } from '../store/session.ts';
import { grantOf } from './account.ts';
import { type Asked, asked, isDenied } from './asked.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { ServerFacts } from './server-facts.ts';

const TABLES = ['variables_by_thread', 'threads'] as const;
const MOST_THREADS = 5;

/** A setting of the log that a session has for itself. */
export interface SessionSetting {
  readonly name: string;
  readonly value: string;
  /** `user@host` of the client. */
  readonly client: string;
  /** As in the process list. */
  readonly thread: number;
}

/**
 * Settings of the log that differ from the global ones: a pool keeps what was the default when it connected. Of row
 * images not those of our own user: the relay asks for short ones. Null: the server does not tell (MariaDB).
 */
export async function readSessionSettings(
  session: Session,
  { version, variables }: ServerFacts,
): Promise<Asked<readonly SessionSetting[]> | null> {
  if (version.flavour !== 'mysql') return null;
  return asked(async () => {
    const rows = await session.rows(
      'looking at settings of sessions',
      `SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value, PROCESSLIST_ID AS thread,
         CONCAT(PROCESSLIST_USER, '@', PROCESSLIST_HOST) AS client,
         PROCESSLIST_USER = SUBSTRING_INDEX(USER(), '@', 1) AS is_ours
       FROM performance_schema.variables_by_thread JOIN performance_schema.threads USING (THREAD_ID)
       WHERE VARIABLE_NAME IN ('binlog_format', 'binlog_row_image', 'sql_log_bin')
         AND PROCESSLIST_USER IS NOT NULL AND PROCESSLIST_ID <> CONNECTION_ID()
       ORDER BY PROCESSLIST_ID`,
    );
    return rows
      .map(({ name, value, thread, client, is_ours }) => {
        return { name: String(name), value: String(value), thread: Number(thread), client: String(client), is_ours };
      })
      .filter(({ name, is_ours }) => name !== 'binlog_row_image' || Number(is_ours) === 0)
      .filter(({ name, value }) => value !== (variables.get(name) ?? 'ON'))
      .map(({ name, value, thread, client }) => ({ name, value, thread, client }));
  });
}

/** Pure. */
export function sessionSettingFindings(
  sessions: Asked<readonly SessionSetting[]> | null,
  { account }: ServerFacts,
  settings: Settings,
): Finding[] {
  const check = findingsOf('binlog', 'session-settings');
  if (sessions === null) {
    return [check.unknown({ fact: 'binlog_format of sessions could not be looked at: MariaDB does not tell' })];
  }
  if (!sessions.known) {
    const needs = isDenied(sessions.why)
      ? `that needs SELECT on performance_schema.${TABLES.join(' and ')}`
      : sessions.why.detail;
    return [
      check.unknown({
        fact: `binlog_format of sessions could not be looked at: ${needs}`,
        effect: 'a pool that was connected before a change of the global setting goes on with the old one',
        fix: TABLES.map((table) => grantOf('SELECT', `performance_schema.${table}`, account)).join('\n'),
      }),
    ];
  }
  // Whether they write outbox rows cannot be told. With `keep` nothing else would ever send them.
  const isKept = settings.outboxes.some(({ retire }) => retire === 'keep');
  const found = grouped(sessions.value).flatMap((group): Finding[] => {
    const [{ name, value, client }] = group;
    if (!(BAD[name] ?? []).includes(value)) return [];
    const text = {
      fact: `${group.length === 1 ? 'a session' : `${group.length} sessions`} of ${client} ${group.length === 1 ? 'has' : 'have'} ${name} = ${value} (thread ${threads(group)})`,
      effect: EFFECTS[name],
      fix: `reconnect them, or see who sets it: ${group
        .slice(0, MOST_THREADS)
        .map(({ thread }) => `KILL ${thread};`)
        .join(' ')}`,
    };
    return [isKept && name !== 'binlog_row_image' ? check.error(text) : check.warning(text)];
  });
  return found.length > 0 ? found : [check.good('no session has settings of the log of its own')];
}

const BAD: Readonly<Partial<Record<string, readonly string[]>>> = {
  binlog_format: ['STATEMENT', 'MIXED'],
  sql_log_bin: ['OFF'],
  binlog_row_image: ['MINIMAL', 'NOBLOB'],
};

const EFFECTS: Readonly<Record<string, string>> = {
  binlog_format: 'rows that they write as statements go by the sweep, with retire: keep they are never sent',
  sql_log_bin: 'rows that they write are not in the log: they go by the sweep, with retire: keep they are never sent',
  binlog_row_image: 'columns left to their defaults are not in the log: each such row costs a SELECT',
};

function grouped(sessions: readonly SessionSetting[]): SessionSetting[][] {
  return [...Map.groupBy(sessions, ({ name, value, client }) => `${name} ${value} ${client}`).values()];
}

function threads(group: readonly SessionSetting[]): string {
  const list = group.slice(0, MOST_THREADS).map(({ thread }) => thread);
  return `${list.join(', ')}${group.length > MOST_THREADS ? ', …' : ''}`;
}
