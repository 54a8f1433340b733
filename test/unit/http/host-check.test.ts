import fastify from 'fastify';
import { expect, test } from 'vitest';
import { isLoopback, loopbackNamesOnly } from '../../../src/http/host-check.ts';

const LOOPBACK = [
  '127.0.0.1',
  '127.8.9.10',
  'localhost',
  'LOCALHOST',
  'relay.localhost',
  '::1',
  '[::1]',
  '::ffff:127.0.0.1',
];
const ELSEWHERE = [
  '0.0.0.0',
  '::',
  '10.0.0.7',
  'db1',
  '127.evil.example',
  '127.0.0.1.evil.example',
  'localhost.evil.example',
  '',
];

async function answer(listensOn: string, host: string): Promise<number> {
  const app = fastify();
  app.addHook('onRequest', loopbackNamesOnly(listensOn));
  app.get('/status', () => ({}));
  const { statusCode } = await app.inject({ url: '/status', headers: { host } });
  await app.close();
  return statusCode;
}

test('what loopback is', () => {
  expect(LOOPBACK.filter((host) => !isLoopback(host))).toEqual([]);
  expect(ELSEWHERE.filter(isLoopback)).toEqual([]);
});

test('on loopback only loopback names are answered, with and without a port', async () => {
  for (const host of ['127.0.0.1', 'localhost:9465', '[::1]:9465']) expect(await answer('127.0.0.1', host)).toBe(200);
  for (const host of ['evil.example:9465', '10.0.0.7', '127.0.0.1.evil.example:9465']) {
    expect(await answer('localhost', host)).toBe(421);
  }
});

test('what listens for others answers to any name', async () => {
  expect(await answer('0.0.0.0', 'relay.internal:9465')).toBe(200);
});
