import type { Fault } from '../model/fault.ts';
import type { MysqlSettings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';

const CHECK = findingsOf('mysql', 'mysql-connection');

/** It cannot be asked, or not any more. Pure. */
export function noServerFindings(why: Fault, { host, port }: MysqlSettings): Finding[] {
  return [
    CHECK.error({
      fact: `MySQL cannot be used at ${host}:${port}: ${why.detail} (${why.code})`,
      effect: 'nothing is sent, and nothing of MySQL could be checked',
      fix:
        why.code === 'MYSQL_ACCESS_DENIED'
          ? 'see mysql.user, mysql.password and mysql.tls, and what the user may do: SHOW GRANTS'
          : 'see that MySQL runs there and can be reached from here; mysql.host, mysql.port',
      stopsTail: true,
    }),
  ];
}

/** Pure. */
export function connectionFindings({ host, tls }: MysqlSettings): Finding[] {
  const isLocal = /^(?:127\.|localhost$|::1$)/.test(host);
  if (tls === null && !isLocal) {
    return [
      CHECK.warning({
        fact: 'connections to MySQL are not encrypted (mysql.tls is off)',
        effect: 'rows can be read on the way',
        fix: 'mysql.tls: {caFile: ...}',
      }),
    ];
  }
  if (tls?.verify === false) {
    return [
      CHECK.warning({
        fact: 'the certificate of MySQL is not checked (mysql.tls.verify is false)',
        effect: 'anybody on the way can be the server',
        fix: 'mysql.tls.caFile, and mysql.tls.verify: true',
      }),
    ];
  }
  return [CHECK.good(`MySQL is connected with ${tls === null ? 'no TLS' : 'TLS'}`)];
}
