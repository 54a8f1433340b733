import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const LOWEST = 15_000;
/** Linux's first ephemeral port. Above it an outgoing connection could take the port of a server that is down. */
const BEHIND_HIGHEST = 32_768;

/**
 * A free TCP port of the loopback address that stays free while its server is down, and that nobody else is given for as
 * long as this process lives.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(LOWEST, BEHIND_HIGHEST);
    if ((await isFree(port)) && (await isReserved(port))) return port;
  }
  throw new Error(`no free port found in ${LOWEST}-${BEHIND_HIGHEST - 1}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** By the UDP port of the same number, which no server here has a use for: the system gives it back when we are gone. */
function isReserved(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.once('error', () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });
}
