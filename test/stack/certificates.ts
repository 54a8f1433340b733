import { isIP } from 'node:net';
import { generate } from 'selfsigned';
import type { Certificate } from './handles.ts';

export interface CertificateOptions {
  /** Host names and IP addresses. Default: 127.0.0.1 and localhost. */
  readonly names?: readonly string[];
  /** Valid until yesterday. */
  readonly expired?: boolean;
}

export interface Authority {
  /** PEM. */
  readonly ca: string;
  /** A certificate for a server or a client, signed by this authority. */
  issue(options?: CertificateOptions): Promise<Certificate>;
}

const DAY_MS = 86_400_000;
const KEYS = { keyType: 'rsa', keySize: 2048, algorithm: 'sha256' } as const;

/** A certificate authority of its own, unknown to everybody. */
export async function makeAuthority(): Promise<Authority> {
  const root = await generate([{ name: 'commonName', value: 'Test authority' }], {
    ...KEYS,
    notBeforeDate: new Date(Date.now() - 3 * DAY_MS),
    notAfterDate: new Date(Date.now() + 30 * DAY_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return {
    ca: root.cert,
    async issue({ names = ['127.0.0.1', 'localhost'], expired = false } = {}) {
      const issued = await generate([{ name: 'commonName', value: names[0] }], {
        ...KEYS,
        ca: { key: root.private, cert: root.cert },
        notBeforeDate: new Date(Date.now() - 2 * DAY_MS),
        notAfterDate: new Date(Date.now() + (expired ? -DAY_MS : 7 * DAY_MS)),
        extensions: [
          { name: 'basicConstraints', cA: false },
          { name: 'keyUsage', digitalSignature: true, keyEncipherment: true },
          { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
          {
            name: 'subjectAltName',
            altNames: names.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
          },
        ],
      });
      return { ca: root.cert, cert: issued.cert, key: issued.private };
    },
  };
}
