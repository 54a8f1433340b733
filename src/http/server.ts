import fastify, { type FastifyInstance } from 'fastify';
import { pause } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { HttpSettings } from '../model/settings.ts';
import { addActions } from './actions.ts';
import { Refusal } from './desk.ts';
import { isLoopback, loopbackNamesOnly } from './host-check.ts';
import { addRoutes, type RouteOptions } from './routes.ts';

/** A request is a line and a few headers, and there are few who ask. */
const REQUEST_MS = 5_000;
const MOST_HEADER_BYTES = 8_192;
const MOST_CONNECTIONS = 64;
const PORT_RETRY_MS = 5_000;

export interface HttpOptions extends RouteOptions {
  readonly settings: HttpSettings;
  readonly log: Log;
}

/**
 * Answers until `signal` is aborted. Where it cannot listen it says so once and goes on trying: rows move without it.
 * Nothing it answers has a payload or a secret in it, and a key only where parked and failed rows are asked for.
 */
export async function serveHttp(options: HttpOptions, signal: AbortSignal): Promise<void> {
  const { settings, clock, log } = options;
  if (settings.port === 0) return;
  const { host, port } = settings;
  for (let tries = 1; !signal.aborted; tries++) {
    const app = createApp(options);
    try {
      await app.listen({ host, port });
      log.info('http-listening', { host, port, access: settings.token === null ? 'open' : 'by token' });
      if (settings.token === null && !isLoopback(host))
        log.warn('http-exposed', { host, port, fix: 'set http.tokenFile' });
      await aborted(signal);
      return;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'INTERNAL';
      if (tries === 1) log.warn('http-unavailable', { host, port, code, effect: 'no health, status and metrics' });
      await pause(clock, PORT_RETRY_MS, signal);
    } finally {
      await app.close();
    }
  }
}

export function createApp(options: HttpOptions): FastifyInstance {
  const { settings, desk, log } = options;
  const app = fastify({
    logger: false,
    bodyLimit: 1,
    requestTimeout: REQUEST_MS,
    connectionTimeout: 2 * REQUEST_MS,
    keepAliveTimeout: 2 * REQUEST_MS,
    forceCloseConnections: true,
    exposeHeadRoutes: true,
    http: { maxHeaderSize: MOST_HEADER_BYTES, headersTimeout: REQUEST_MS },
  });
  app.server.maxConnections = MOST_CONNECTIONS;
  app.addHook('onRequest', loopbackNamesOnly(settings.host));
  app.removeContentTypeParser('text/plain');
  app.addHook('onSend', async (_, reply) => {
    reply
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer');
  });
  app.setNotFoundHandler((_, reply) => reply.code(404).send({ error: 'not found' }));
  app.setErrorHandler((error: { statusCode?: number }, _, reply) => {
    if (error instanceof Refusal) return reply.code(error.code).send({ error: error.message, fix: error.fix });
    const code = error.statusCode ?? 500;
    return reply.code(code).send({ error: code < 500 ? 'bad request' : 'internal error' });
  });
  addRoutes(app, settings.token, options);
  addActions(app, settings.token, desk, log);
  return app;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
