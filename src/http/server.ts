import { createHash, timingSafeEqual } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type Clock, pause } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { HttpSettings } from '../model/settings.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { History } from '../observability/history.ts';
import type { Observer } from '../observability/observer.ts';
import { statusView } from './status-view.ts';

/** A request is a line and a few headers, and there are few who ask. */
const REQUEST_MS = 5_000;
const MOST_HEADER_BYTES = 8_192;
const MOST_CONNECTIONS = 64;
const PORT_RETRY_MS = 5_000;

export interface HttpOptions {
  readonly settings: HttpSettings;
  readonly relay: string;
  /** By outbox: `schema.table`. */
  readonly outboxes: readonly string[];
  readonly observer: Observer;
  readonly history: History;
  readonly metrics: Pick<Metrics, 'text' | 'registry'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Answers until `signal` is aborted. Where it cannot listen it says so once and goes on trying: rows move without it.
 * Nothing it answers has a key, a payload or a secret in it.
 */
export async function serveHttp(options: HttpOptions, signal: AbortSignal): Promise<void> {
  const { settings, clock, log } = options;
  if (settings.port === 0) return;
  const { host, port } = settings;
  for (let tries = 1; !signal.aborted; tries++) {
    const app = createApp(options);
    try {
      await app.listen({ host, port });
      log.info('http-listening', { host, port, token: settings.token !== null ? 'needed' : 'none' });
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
  const { settings, observer, metrics } = options;
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
  const onRequest = bearer(settings.token);
  app.addHook('onSend', async (_, reply) => {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
  });
  app.setNotFoundHandler((_, reply) => reply.code(404).send({ error: 'not found' }));
  app.setErrorHandler((error: { statusCode?: number }, _, reply) => {
    const code = error.statusCode ?? 500;
    return reply.code(code).send({ error: code < 500 ? 'bad request' : 'internal error' });
  });

  // To answer is to be alive: the event loop turns.
  app.get('/livez', () => ({ live: true }));
  app.get('/readyz', (_, reply) => {
    const { verdict, notReady } = observer.look();
    const ready = notReady.length === 0;
    return reply.code(ready ? 200 : 503).send({ ready, state: verdict.word, reasons: notReady });
  });
  app.get('/status', { onRequest }, () => statusView(options));
  app.get('/metrics', { onRequest }, async (_, reply) => {
    const text = await metrics.text();
    return reply.type(metrics.registry.contentType).send(text);
  });
  return app;
}

/** Digests are compared: they are of one length, and take the same time whatever is in them. */
function bearer(token: string | null) {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = token === null ? null : digest(`Bearer ${token}`);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (wanted === null || timingSafeEqual(wanted, digest(request.headers.authorization ?? ''))) return;
    await reply.code(401).header('www-authenticate', 'Bearer').send({ error: 'a token is needed' });
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
