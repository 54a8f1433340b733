import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Proxy } from '../../stack/proxy.ts';
import { until } from '../../stack/until.ts';

/** Sends back what it gets. */
let echo: Server;
let proxy: Proxy;
const clients: Socket[] = [];

beforeEach(async () => {
  echo = await echoServer('');
  proxy = await Proxy.open({ host: '127.0.0.1', port: portOf(echo) });
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy[Symbol.asyncDispose]();
  echo.close();
});

test('forwards both ways and counts connections', async () => {
  const client = await dial();
  await client.says('hello', 'hello');
  await dial();
  expect(proxy.connections).toBe(2);
  client.socket.end();
  await until(() => proxy.connections === 1, { withinMs: 20_000, what: 'one connection left' });
  expect(proxy.accepted).toBe(2);
});

test('a freeze is silence, not an end, and a thaw brings everything', async () => {
  const client = await dial();
  await client.says('a', 'a');
  proxy.freeze();
  client.socket.write('b');
  const late = await dial();
  late.socket.write('c');
  await silence(100);
  expect([client.got, client.closed, late.got, late.closed]).toEqual(['a', false, '', false]);
  proxy.thaw();
  await until(() => client.got === 'ab' && late.got === 'c', { withinMs: 20_000, what: 'what was held back' });
});

test('one direction can be frozen alone', async () => {
  const heard: string[] = [];
  echo.on('connection', (socket) => socket.on('data', (chunk) => heard.push(String(chunk))));
  const client = await dial();
  proxy.freeze('down');
  client.socket.write('x');
  await until(() => heard.join('') === 'x', { withinMs: 20_000, what: 'the request at the server' });
  await silence(50);
  expect(client.got).toBe('');
});

test('a cut resets, and new connections are accepted', async () => {
  const client = await dial();
  await client.says('a', 'a');
  proxy.cut();
  await until(() => client.closed, { withinMs: 20_000, what: 'the reset' });
  expect(client.error).toBe('ECONNRESET');
  await (await dial()).says('b', 'b');
});

test('cuts after a number of bytes, once', async () => {
  proxy.cutAfter(3, 'down');
  const client = await dial();
  client.socket.write('abcdef');
  await until(() => client.closed, { withinMs: 20_000, what: 'the cut' });
  expect('abc'.startsWith(client.got)).toBe(true); // a reset may overtake bytes that are on their way
  await (await dial()).says('abcdef', 'abcdef');
});

test('delays and throttles', async () => {
  const client = await dial();
  proxy.delayMs = 60;
  expect(await client.says('a', 'a')).toBeGreaterThan(110);
  proxy.delayMs = 0;
  proxy.bytesPerSecond = 10_000;
  expect(await client.says('b'.repeat(1000), 'b'.repeat(1000))).toBeGreaterThan(150);
});

test('new connections go to a new target', async () => {
  const other = await echoServer('other ');
  try {
    const before = await dial();
    await before.says('a', 'a');
    proxy.target = { host: '127.0.0.1', port: portOf(other) };
    await (await dial()).says('b', 'other b');
    await before.says('c', 'c');
  } finally {
    other.close();
  }
});

test('a target that is down looks like a reset', async () => {
  echo.close();
  await once(echo, 'close');
  const client = await dial();
  await until(() => client.closed, { withinMs: 20_000, what: 'the reset' });
});

interface Client {
  readonly socket: Socket;
  got: string;
  closed: boolean;
  error: string | undefined;
  /** Sends and waits for the answer; milliseconds. */
  says(text: string, answer: string): Promise<number>;
}

async function dial(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  const client: Client = {
    ...{ socket, got: '', closed: false, error: undefined },
    async says(text, answer) {
      const startedAt = performance.now();
      client.got = '';
      socket.write(text);
      await until(() => client.got === answer, { withinMs: 20_000, everyMs: 1, what: `"${answer.slice(0, 20)}"` });
      return performance.now() - startedAt;
    },
  };
  socket.on('data', (chunk) => (client.got += String(chunk)));
  socket.on('error', (error: NodeJS.ErrnoException) => (client.error = error.code));
  socket.on('close', () => (client.closed = true));
  await once(socket, 'connect');
  return client;
}

async function echoServer(greeting: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => socket.write(greeting + String(chunk)));
    socket.on('end', () => socket.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** That nothing comes can only be seen by waiting. */
function silence(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
