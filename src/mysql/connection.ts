import type { ConnectionOptions } from 'mysql2';
import type { MysqlSettings, TlsSettings } from '../model/settings.ts';

/** Keep-alive probes find half-open sockets that the server's own time-outs do not. */
const KEEP_ALIVE_AFTER_MS = 15_000;

/**
 * Options of every connection to MySQL: the pool, the leader's, zongji's two. One function, so that host, port, TLS
 * and credentials cannot differ between them. Values come as the server writes them: integers that do not fit a
 * double as strings, times as strings in UTC.
 *
 * TLS: mysql2 checks the certificate's host name only with `verifyIdentity`.
 */
export function connectionOptions(settings: MysqlSettings): ConnectionOptions {
  return {
    host: settings.host,
    port: settings.port,
    user: settings.user,
    password: settings.password,
    connectTimeout: settings.connectTimeoutMs,
    enableKeepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
    charset: 'utf8mb4',
    timezone: 'Z',
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    ...(settings.tls === null ? {} : { ssl: tlsOptions(settings.tls) }),
  };
}

function tlsOptions(tls: TlsSettings): NonNullable<ConnectionOptions['ssl']> & object {
  return {
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    rejectUnauthorized: tls.verify,
    verifyIdentity: tls.verify,
  };
}
