import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Log } from '../model/log.ts';
import type { Secret } from '../model/secret.ts';
import { mayAct } from './access.ts';
import { type Desk, Refusal } from './desk.ts';

/** Some hundred ids, of whatever they are. */
const BODY_BYTES = 65_536;
const MOST_IDS = 200;

const rows = z.strictObject({
  outbox: z.string().min(1).max(129),
  ids: z.array(z.string().min(1).max(3_072)).min(1).max(MOST_IDS),
});
const nothing = z.strictObject({});
const job = z.string().regex(/^\d{1,19}$/);

/** What changes something. Each is logged, with who asked; the acts on rows are in `cdc_relay_actions` too. */
export function addActions(app: FastifyInstance, token: Secret | null, desk: Desk, log: Log): void {
  const options = { onRequest: mayAct(token), bodyLimit: BODY_BYTES };
  const told = (request: FastifyRequest, action: string, fields: object = {}): string => {
    const who = `http ${request.ip}`;
    log.info('asked-over-http', { action, who, ...fields });
    return who;
  };
  for (const action of ['retry', 'discard'] as const) {
    app.post(`/failed/${action}`, options, (request) => {
      const { outbox, ids } = parsed(rows, request.body);
      return desk.act(action, outbox, ids, told(request, action, { outbox, rows: ids.length }));
    });
  }
  for (const action of ['pause', 'resume'] as const) {
    app.post(`/${action}`, options, async (request) => {
      parsed(nothing, request.body);
      return { paused: await desk[action](told(request, action)) };
    });
  }
  app.post<{ Params: { id: string } }>('/jobs/:id/cancel', options, async (request) => {
    parsed(nothing, request.body);
    const id = job.safeParse(request.params.id);
    if (!id.success) throw new Refusal(400, 'that is no number of a job');
    await desk.cancel(BigInt(id.data), told(request, 'cancel', { job: id.data }));
    return { cancelled: true };
  });
}

/** Every fault is named, not just the first. */
function parsed<T>(schema: z.ZodType<T>, body: unknown): T {
  const { success, data, error } = schema.safeParse(body);
  if (success) return data;
  const faults = error.issues.map(({ path, message }) => `${path.length === 0 ? 'body' : path.join('.')}: ${message}`);
  throw new Refusal(400, 'the body is not what is expected', faults.join('; '));
}
