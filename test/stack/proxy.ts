import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** `up` flows from the client to the target, `down` back. */
export type Direction = 'up' | 'down';

export interface Target {
  readonly host: string;
  readonly port: number;
}

const DIRECTIONS: readonly Direction[] = ['up', 'down'];

/**
 * A TCP proxy in this process, for faults of the network that a server cannot be made to show. Settings hold for
 * present and future connections alike.
 */
export class Proxy implements AsyncDisposable {
  /** Where new connections go to. */
  target: Target;
  /** Added to the way of each chunk. */
  delayMs = 0;
  /** Each direction of each connection; Infinity: as fast as it goes. */
  bytesPerSecond = Infinity;
  /** Connections accepted so far. */
  accepted = 0;
  readonly #listener: Server;
  readonly #links = new Set<Link>();
  readonly #frozen: Record<Direction, Gate> = { up: new Gate(), down: new Gate() };
  readonly #cutIn: Record<Direction, number> = { up: Infinity, down: Infinity };
  /** Which connections `freezeSome` freezes: those whose client has sent a chunk for which this says so. */
  marks: (chunk: Buffer) => boolean = () => false;
  readonly #someFrozen = new Gate();
  /** What connections are for: by a name, what their clients have sent at some time. */
  kinds: Readonly<Record<string, (chunk: Buffer) => boolean>> = {};

  private constructor(target: Target, listener: Server) {
    this.target = target;
    this.#listener = listener;
    listener.on('connection', (client) => this.#link(client));
  }

  /** Listens on a free port of 127.0.0.1. */
  static async open(target: Target): Promise<Proxy> {
    const listener = createServer({ allowHalfOpen: true });
    const proxy = new Proxy(target, listener);
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Connections open now. */
  get connections(): number {
    return this.#links.size;
  }

  /** Nothing passes any more, and nobody is told: no FIN, no RST, new connections are accepted and stay silent. */
  freeze(direction?: Direction): void {
    for (const each of DIRECTIONS) if (direction === undefined || direction === each) this.#frozen[each].close();
  }

  /** The same for those connections alone that `marks` knows. */
  freezeSome(): void {
    this.#someFrozen.close();
  }

  /** Those of this kind that there are now say nothing any more, both ways and for ever. Returns how many. */
  silence(kind: string): number {
    const links = this.#of(kind);
    for (const link of links) link.silence();
    return links.length;
  }

  /** The same, and the server has lost them: it knows of its end, the client does not. */
  forget(kind: string): number {
    const links = this.#of(kind);
    for (const link of links) link.forget();
    return links.length;
  }

  thaw(): void {
    this.#someFrozen.open();
    for (const each of DIRECTIONS) this.#frozen[each].open();
  }

  /** Resets all connections. New ones are accepted. */
  cut(): void {
    for (const link of [...this.#links]) link.reset();
  }

  /** Lets this many more bytes pass in the direction, over all connections, and resets the connection that is then in use. Once. */
  cutAfter(bytes: number, direction: Direction): void {
    this.#cutIn[direction] = bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    this.cut();
    await closed;
  }

  #of(kind: string): Link[] {
    return [...this.#links].filter((link) => link.kinds.has(kind) && !link.isSilent);
  }

  #link(client: Socket): void {
    this.accepted++;
    const server = connect({ ...this.target, allowHalfOpen: true });
    const link = new Link(client, server);
    this.#links.add(link);
    void link.ended.then(() => this.#links.delete(link));
    void this.#pump('up', client, server, link);
    void this.#pump('down', server, client, link);
  }

  async #pump(direction: Direction, from: Socket, to: Socket, link: Link): Promise<void> {
    try {
      for await (const chunk of from as AsyncIterable<Buffer>) {
        if (direction === 'up') this.#note(link, chunk);
        await this.#pace(direction, chunk.length);
        if (link.isMarked) await this.#someFrozen.passed();
        await link.passed();
        const left = this.#cutIn[direction];
        if (chunk.length < left) {
          this.#cutIn[direction] = left - chunk.length;
        } else {
          this.#cutIn[direction] = Infinity;
          to.write(chunk.subarray(0, left), () => link.reset());
          return;
        }
        if (!to.write(chunk)) await once(to, 'drain', { signal: link.signal });
      }
      await this.#frozen[direction].passed();
      await link.passed();
      to.end();
    } catch {
      if (!link.isSilent) link.reset(); // one side is gone: so is the connection
    }
  }

  #note(link: Link, chunk: Buffer): void {
    if (this.marks(chunk)) link.isMarked = true;
    for (const [kind, is] of Object.entries(this.kinds)) if (is(chunk)) link.kinds.add(kind);
  }

  async #pace(direction: Direction, bytes: number): Promise<void> {
    if (this.delayMs > 0) await sleep(this.delayMs);
    if (this.bytesPerSecond < Infinity) await sleep((1000 * bytes) / this.bytesPerSecond);
    await this.#frozen[direction].passed();
  }
}

/** One proxied connection: two sockets that end together. */
class Link {
  readonly ended: Promise<unknown>;
  isMarked = false;
  readonly kinds = new Set<string>();
  isSilent = false;
  readonly #silence = new Gate();
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #aborter = new AbortController();

  constructor(client: Socket, server: Socket) {
    this.#client = client;
    this.#server = server;
    for (const socket of [client, server]) {
      socket.on('error', () => {
        if (!this.isSilent) this.reset();
      });
    }
    this.ended = Promise.all([client, server].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  silence(): void {
    this.isSilent = true;
    this.#silence.close();
  }

  forget(): void {
    this.silence();
    this.#server.destroy();
  }

  passed(): Promise<void> {
    return this.#silence.passed();
  }

  reset(): void {
    this.#aborter.abort();
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
  }
}

/** Open at first. */
class Gate {
  #opened: PromiseWithResolvers<undefined> | null = null;

  close(): void {
    this.#opened ??= Promise.withResolvers<undefined>();
  }

  open(): void {
    this.#opened?.resolve(undefined);
    this.#opened = null;
  }

  async passed(): Promise<void> {
    while (this.#opened !== null) await this.#opened.promise;
  }
}
