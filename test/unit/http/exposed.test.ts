import { expect, test } from 'vitest';
import { type HttpOptions, serveHttp } from '../../../src/http/server.ts';
import { systemClock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import { freePort } from '../../stack/ports.ts';

/** What is told while it listens. Nobody asks for anything, so that nothing else is needed. */
async function told(host: string, token: string | null): Promise<string[]> {
  const events: string[] = [];
  const stop = new AbortController();
  const tell = (event: string): void => {
    events.push(event);
    if (event === 'http-listening') setImmediate(() => stop.abort());
  };
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell, child: () => log };
  const settings = { host, port: await freePort(), token, readyLagMs: 60_000 };
  await serveHttp({ settings, clock: systemClock, log } as HttpOptions, stop.signal);
  return events;
}

test('who listens beyond this machine without a token is told of it', async () => {
  expect(await told('0.0.0.0', null)).toEqual(['http-listening', 'http-exposed']);
  expect(await told('0.0.0.0', 'a token of 16 characters')).toEqual(['http-listening']);
  expect(await told('127.0.0.1', null)).toEqual(['http-listening']);
});
