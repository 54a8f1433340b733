import type { DatabaseServer } from './handles.ts';
import { Proxy } from './proxy.ts';
import type { Following } from './replica.ts';
import { startMysql } from './stack.ts';

const WITHOUT_GTIDS = ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'];

/** A MySQL with a replica, and the one address by which everybody knows whichever of them is the primary. */
export class MovingAddress implements AsyncDisposable {
  readonly primary: DatabaseServer;
  readonly replica: DatabaseServer;
  readonly proxy: Proxy;
  readonly #stack: AsyncDisposableStack;

  private constructor(primary: DatabaseServer, replica: DatabaseServer, proxy: Proxy, stack: AsyncDisposableStack) {
    this.primary = primary;
    this.replica = replica;
    this.proxy = proxy;
    this.#stack = stack;
  }

  /** `by`: as in `follow`; by file both servers have no GTIDs. */
  static async start({ by = 'gtid' }: Following = {}): Promise<MovingAddress> {
    await using stack = new AsyncDisposableStack();
    const flags = by === 'gtid' ? [] : WITHOUT_GTIDS;
    const primary = stack.use(await startMysql({ flags }));
    const replica = stack.use(await startMysql({ flags, replicaOf: primary, replicaBy: by }));
    const proxy = stack.use(await Proxy.open(primary));
    return new MovingAddress(primary, replica, proxy, stack.move());
  }

  /** What is behind the address, as a server of a test's own. */
  get server(): DatabaseServer {
    return { ...this.primary, host: '127.0.0.1', port: this.proxy.port };
  }

  /** New connections reach the replica from now on; those that there are stay. */
  move(): void {
    this.proxy.target = { host: this.replica.host, port: this.replica.port };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
