import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';

export type TablePrivilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

/** Rights on one table, and what is lost without them. */
export interface NeededRights {
  readonly schema: string;
  readonly table: string;
  readonly privileges: readonly TablePrivilege[];
  /** Columns that are read and written; null: all. */
  readonly columns: { readonly read: readonly string[]; readonly written: readonly string[] } | null;
  readonly effect: string;
  /** False: only something beside the delivery of rows does not work. */
  readonly isVital: boolean;
}

const ALL = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;

/** What the relay does with which table. */
export function neededRights(settings: Settings): NeededRights[] {
  const schema = settings.mysql.database;
  const own = (name: string, isVital: boolean, privileges: readonly TablePrivilege[], effect: string): NeededRights => {
    return { schema, table: `cdc_relay_${name}`, privileges, columns: null, effect, isVital };
  };
  const isRefusing = settings.outboxes.some(({ limits }) => limits?.policy === 'refuse');
  return [
    own(
      'offsets',
      true,
      ['SELECT', 'INSERT', 'UPDATE'],
      'no position can be saved, no relay can lead: nothing is sent',
    ),
    own('parked', true, ALL, 'what has to wait cannot be noted: nothing is sent'),
    own('jobs', true, ['SELECT', 'INSERT', 'UPDATE'], 'the relay cannot look for jobs (cdc-relay resync)'),
    own('limits', isRefusing, ALL, 'the flag that tells applications to wait (limits.policy: refuse) cannot be kept'),
    own('canary', false, ['SELECT', 'INSERT', 'DELETE'], 'check has no canary'),
    own('migrations', false, ['SELECT'], 'check cannot tell whether a migration is missing'),
    own('actions', false, ['INSERT'], 'cdc-relay failed retry and failed discard refuse to act'),
    ...settings.outboxes.flatMap(outboxRights),
  ];
}

function outboxRights(outbox: OutboxSettings): NeededRights[] {
  const { schema, table, columns, topic, retire, retention } = outbox;
  const read = Object.values(columns).filter((name) => name !== null);
  if (topic.kind === 'column') read.push(topic.column);
  const { status, claimedAt, claimedBy, attempts, lastError, publishedAt } = columns;
  const written = [status, claimedAt, claimedBy, attempts, lastError, publishedAt].filter((name) => name !== null);
  const on = { schema, table, columns: { read, written } };
  const rights: NeededRights[] = [
    {
      ...on,
      privileges: ['SELECT'],
      isVital: true,
      effect: 'its columns and rows cannot be read: nothing of it is sent',
    },
  ];
  if (retire !== 'keep') {
    const effect = 'rows cannot be claimed or marked: none is retired, and each is sent again after a restart';
    rights.push({ ...on, privileges: ['UPDATE'], isVital: true, effect });
  }
  if (retire === 'delete') {
    rights.push({ ...on, privileges: ['DELETE'], isVital: true, effect: 'rows that were sent cannot be deleted' });
  } else if (retire === 'mark') {
    const effect = 'retention, cdc-relay purge and failed discard cannot delete rows';
    rights.push({ ...on, privileges: ['DELETE'], isVital: retention !== null, effect });
  }
  if (retention?.archive != null) {
    const effect = 'rows cannot be moved into the archive: they stay';
    rights.push({ ...retention.archive, columns: null, privileges: ['SELECT', 'INSERT'], isVital: true, effect });
  }
  return rights;
}

/** A statement that needs the privilege, to be explained, not run: the server refuses it as it would refuse the real one. */
export function trialOf(privilege: TablePrivilege, { schema, table, columns }: NeededRights): string {
  const name = quoteTable(schema, table);
  const list = (names: readonly string[] | undefined, each: (name: string) => string): string | null => {
    return names === undefined || names.length === 0 ? null : names.map((one) => each(quoteIdentifier(one))).join(', ');
  };
  switch (privilege) {
    case 'SELECT':
      return `EXPLAIN SELECT ${list(columns?.read, (column) => column) ?? '1'} FROM ${name} LIMIT 0`;
    case 'INSERT':
      return `EXPLAIN INSERT INTO ${name} () VALUES ()`;
    case 'UPDATE':
      // Without a column that is read. One that is not there is complained of after the privilege is.
      return `EXPLAIN UPDATE ${name} SET ${list(columns?.written, (column) => `${column} = NULL`) ?? '`no column` = NULL'} WHERE FALSE`;
    case 'DELETE':
      return `EXPLAIN DELETE FROM ${name} WHERE FALSE`;
  }
}
