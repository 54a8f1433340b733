import type { Settings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { TableFacts } from './table-facts.ts';

/** The relay's own tables. Pure. */
export function relayTableFindings({ missing, notApplied }: TableFacts, { mysql }: Settings): Finding[] {
  const check = findingsOf('tables', 'relay-tables');
  if (missing.length > 0) {
    return [
      check.error({
        fact: `tables of the relay are missing in ${mysql.database}: ${missing.join(', ')}`,
        effect: 'the relay has nowhere to keep its position and what waits',
        fix: 'cdc-relay migrate',
        stopsTail: true,
      }),
    ];
  }
  if (!notApplied.known) {
    return [
      check.unknown({
        fact: 'which migrations have been applied could not be read: cdc_relay_migrations is not shown',
      }),
    ];
  }
  if (notApplied.value.length > 0) {
    return [
      check.error({
        fact: `migrations have not been applied in ${mysql.database}: ${notApplied.value.join(', ')}`,
        effect: 'columns or tables that this version needs may be missing',
        fix: 'cdc-relay migrate',
        stopsTail: true,
      }),
    ];
  }
  return [check.good(`the relay's tables in ${mysql.database} are up to date`)];
}
