import { connect as connectTcp, isIP, type Socket } from 'node:net';
import {
  checkServerIdentity,
  connect as connectTls,
  createSecureContext,
  type ConnectionOptions,
  type SecureContext,
} from 'node:tls';
import { fault } from '../model/fault.ts';
import { valueOf } from '../model/secret.ts';
import type { TlsSettings } from '../model/settings.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export type Dial = (address: Address, onConnect: () => void) => Socket;

const KEEP_ALIVE_MS = 30_000;

/** `host:port`, with an IPv6 address in brackets. */
export function formatAddress({ host, port }: Address): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

export function parseAddress(text: string): Address {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) };
}

/**
 * How sockets to brokers are opened. `onConnect` is called when the connection can be used: with TLS, when the
 * certificate has been found good for the host that was dialled. Throws `KAFKA_TLS` when the PEM text cannot be read.
 */
export function createDial(tls: TlsSettings | null): Dial {
  const context = tls === null ? null : secureContexts(tls);
  return (address, onConnect) => {
    const socket =
      tls === null || context === null
        ? connectTcp(address, onConnect)
        : connectTls(tlsOptions(address, tls, context()), onConnect);
    // Small batches must not wait for the acknowledgement of the packet before.
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    return socket;
  };
}

function tlsOptions(address: Address, tls: TlsSettings, secureContext: SecureContext): ConnectionOptions {
  const name = tls.serverName ?? address.host;
  return {
    ...address,
    secureContext,
    rejectUnauthorized: tls.verify,
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    // Server name indication is for names alone (RFC 6066, 3).
    ...(isIP(name) === 0 ? { servername: name } : {}),
  };
}

/** Made anew when a file of the settings has changed. */
function secureContexts({ ca, cert, key }: TlsSettings): () => SecureContext {
  const material = (): (string | undefined)[] => [ca, cert, key].map((pem) => (pem === undefined ? pem : valueOf(pem)));
  let read = material();
  let context = secureContext(read);
  return () => {
    const now = material();
    if (now.every((pem, index) => pem === read[index])) return context;
    context = secureContext(now);
    read = now;
    return context;
  };
}

function secureContext([ca, cert, key]: readonly (string | undefined)[]): SecureContext {
  try {
    return createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  } catch (error) {
    throw fault('KAFKA_TLS', 'halt', 'kafka.tls: the certificate authority, certificate or key cannot be read', error);
  }
}
