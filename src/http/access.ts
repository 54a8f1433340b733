import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Secret, valueOf } from '../model/secret.ts';

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** Lets through what has the token that holds now, and everything where none is set. */
export function bearer(token: Secret | null): Guard {
  return async (request, reply) => {
    if (token === null) return;
    // The scheme's case means nothing, and neither does the number of spaces behind it (RFC 9110, 11.4).
    const given = /^bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1];
    if (given !== undefined && timingSafeEqual(digest(valueOf(token)), digest(given))) return;
    await reply.code(401).header('www-authenticate', 'Bearer').send({ error: 'a token is needed' });
  };
}

/**
 * Lets through what may change something. Who acts must hold the token, which no browser sends by itself: a page of
 * somebody else can neither read an answer nor act. Origin and content type are looked at all the same.
 */
export function mayAct(token: Secret | null): Guard {
  const hasToken = bearer(token);
  return async (request, reply) => {
    if (token === null) {
      await refuse(reply, 403, 'no token is set, and without one nobody may act over HTTP', 'set http.tokenFile');
      return;
    }
    await hasToken(request, reply);
    if (reply.sent) return;
    if (!isOurs(request)) {
      await refuse(reply, 403, 'this was asked for by a page of another origin', 'use the page of the relay itself');
    } else if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
      await refuse(reply, 415, 'the body must be JSON', 'content-type: application/json');
    }
  };
}

async function refuse(reply: FastifyReply, code: number, error: string, fix: string): Promise<void> {
  await reply.code(code).send({ error, fix });
}

/**
 * A browser says by `sec-fetch-site` whose page asks, whatever proxies made of the host; where it does not, the origin
 * has to be the host that was asked. What is no browser sends neither.
 */
function isOurs({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  const { origin, host } = headers;
  return origin === undefined || origin === `http://${host ?? ''}` || origin === `https://${host ?? ''}`;
}

/** Digests are compared: they are of one length, and take the same time whatever is in them. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
