import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Secret } from '../model/secret.ts';
import type { Metrics } from '../observability/metrics.ts';
import { STEP_MS } from '../observability/history.ts';
import { bearer } from './access.ts';
import { type Desk, Refusal } from './desk.ts';
import type { HistoryView } from './history-view.ts';
import { PageFile } from './page.ts';
import { statusView, type StatusSources } from './status-view.ts';

const LISTED = 50;
const MOST_LISTED = 500;

export interface RouteOptions extends StatusSources {
  readonly metrics: Pick<Metrics, 'text' | 'registry'>;
  readonly desk: Desk;
}

/** What is only looked at. Health and the empty page are for everybody, all else for those who have the token. */
export function addRoutes(app: FastifyInstance, token: Secret | null, options: RouteOptions): void {
  const { observer, history, metrics, desk } = options;
  const page = new PageFile();
  const onRequest = bearer(token);

  // To answer is to be alive: the event loop turns.
  app.get('/livez', () => ({ live: true }));
  app.get('/readyz', (_, reply) => {
    const { verdict, notReady } = observer.look();
    const ready = notReady.length === 0;
    return reply.code(ready ? 200 : 503).send({ ready, state: verdict.word, reasons: notReady });
  });
  app.get('/', async (_, reply) => {
    const built = await page.read();
    if (built === null) return reply.code(404).send({ error: 'the page has not been built', fix: 'npm run build' });
    return reply.type('text/html; charset=utf-8').header('content-security-policy', built.policy).send(built.html);
  });
  app.get('/status', { onRequest }, () => statusView(options));
  app.get('/history', { onRequest }, (): HistoryView => {
    return { version: 1, stepMs: STEP_MS, points: history.points().map((point) => ({ ...point })) };
  });
  app.get('/metrics', { onRequest }, async (_, reply) => {
    const text = await metrics.text();
    return reply.type(metrics.registry.contentType).send(text);
  });
  const listed = z.coerce.number().int().min(1).max(MOST_LISTED).default(LISTED);
  app.get<{ Querystring: { limit?: string } }>('/failed', { onRequest }, (request) => {
    const limit = listed.safeParse(request.query.limit);
    if (!limit.success) throw new Refusal(400, `limit: expected a whole number from 1 to ${MOST_LISTED}`);
    return desk.failed(limit.data);
  });
  app.get('/parked', { onRequest }, () => desk.parked());
}
