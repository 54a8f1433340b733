import { connect, type Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { ConnectionOptions } from 'mysql2';
import { fault } from '../model/fault.ts';
import { valueOf } from '../model/secret.ts';
import type { MysqlSettings, TlsSettings } from '../model/settings.ts';

/** Keep-alive probes find half-open sockets that the server's own time-outs do not. */
const KEEP_ALIVE_AFTER_MS = 15_000;

/**
 * Options of every connection to MySQL: the pool, the leader's, zongji's two. One function, so that host, port, TLS
 * and credentials cannot differ between them; to be asked for each connection, because secrets may stand in files that
 * change. Values come as the server writes them: integers that do not fit a double as strings, times as strings in UTC.
 */
export function connectionOptions(settings: MysqlSettings): ConnectionOptions {
  return {
    host: settings.host,
    port: settings.port,
    user: valueOf(settings.user),
    password: valueOf(settings.password),
    connectTimeout: settings.connectTimeoutMs,
    enableKeepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
    charset: 'utf8mb4',
    timezone: 'Z',
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    ...(settings.tls === null ? {} : tlsOptions(settings, settings.tls)),
  };
}

/**
 * mysql2 checks the certificate with `verifyIdentity` only, against its `host` and no other name; where that is an
 * address it leaves the name to Node, which asks the socket for it (tls.connect: `options.socket._host`), and finds
 * none. So `host` is the name to be checked, and the socket is ours: it goes to the true host, and knows the name.
 */
function tlsOptions({ host, port }: MysqlSettings, tls: TlsSettings): ConnectionOptions {
  const name = tls.serverName ?? host;
  const material = readMaterial(tls);
  return {
    host: name,
    stream: (): Socket => {
      const socket = connect({
        host,
        port,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
      });
      return Object.defineProperty(socket, '_host', { get: () => name, set: () => undefined });
    },
    ssl: {
      ...material,
      rejectUnauthorized: tls.verify,
      verifyIdentity: tls.verify,
    },
  };
}

/** mysql2 would throw within the socket's data event what cannot be used: text that is no PEM, a key of another certificate. */
function readMaterial({ ca, cert, key }: TlsSettings): { ca?: string; cert?: string; key?: string } {
  const material = {
    ...(ca === undefined ? {} : { ca: valueOf(ca) }),
    ...(cert === undefined ? {} : { cert: valueOf(cert) }),
    ...(key === undefined ? {} : { key: valueOf(key) }),
  };
  try {
    createSecureContext(material);
  } catch (error) {
    const detail = 'mysql.tls: the certificate authority, certificate or key cannot be used';
    throw fault('MYSQL_ACCESS_DENIED', 'halt', detail, error);
  }
  return material;
}
