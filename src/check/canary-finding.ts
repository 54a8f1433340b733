import { grantOf } from './account.ts';
import type { Canary } from './canary.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { ServerFacts } from './server-facts.ts';

/** Pure. */
export function canaryFindings(canary: Canary, { account }: ServerFacts): Finding[] {
  const check = findingsOf('binlog', 'canary');
  switch (canary.as) {
    case 'came by':
      return [
        check.good(`a row written at ${canary.writtenAt.slice(11, 23)} came by after ${canary.afterMs.toFixed(1)} ms`),
      ];
    case 'missing':
      return [
        check.error({
          fact:
            canary.why === null
              ? `a row written into cdc_relay_canary did not come by in the binlog within ${canary.withinMs / 1000} s`
              : `a row written into cdc_relay_canary did not come by in the binlog; what did, could not be read: ${canary.why.detail} (${canary.why.code})`,
          effect: 'the tail would see nothing, and say nothing: rows go by the sweep only',
          fix:
            canary.why === null
              ? 'see binlog_do_db and binlog_ignore_db, and that host and port lead to one server each time (a proxy may split reads and writes)'
              : 'see binlog_format, which must be ROW',
          stopsTail: true,
        }),
      ];
    case 'no stream':
      return [
        check.error({
          fact: `the binlog cannot be read: ${canary.why.detail} (${canary.why.code})`,
          effect: 'no tail: rows go by the sweep only, with retire: keep nothing is sent',
          fix: canary.why.code === 'BINLOG_NOT_PERMITTED' ? grantOf('REPLICATION SLAVE', '*.*', account) : null,
          stopsTail: true,
        }),
      ];
    case 'not made':
      return [check.unknown({ fact: `no canary: ${canary.what} failed: ${canary.why.detail} (${canary.why.code})` })];
  }
}
