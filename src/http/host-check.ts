import { isIPv4 } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Whether only this machine can connect to what listens there. */
export function isLoopback(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
  const address = name.replace(/^::ffff:/, '');
  if (isIPv4(address)) return address.startsWith('127.');
  return name === '::1' || name === 'localhost' || name.endsWith('.localhost');
}

/**
 * What listens on loopback answers to loopback names only: by a name of its own that leads to 127.0.0.1 a web page could
 * read the answers from within the browser of somebody on this machine (DNS rebinding). What is no browser may send none.
 */
export function loopbackNamesOnly(listensOn: string) {
  const isOpen = !isLoopback(listensOn);
  return async ({ headers }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (isOpen || headers.host === undefined || isLoopback(headers.host.replace(/:\d*$/, ''))) return;
    await reply.code(421).send({ error: 'this name is not served', fix: 'ask for localhost, or set http.host' });
  };
}
