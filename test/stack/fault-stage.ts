import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseOptions, DatabaseServer, KafkaCluster, KafkaOptions } from './handles.ts';
import type { JumpingClock } from './jumping-clock.ts';
import { Proxy } from './proxy.ts';
import type { Config, RelayBed } from './relay-bed.ts';
import type { CliProcess } from './relay-process.ts';
import { startKafka, startMysql } from './stack.ts';

const NOWHERE = { host: '127.0.0.1', port: 9 };

/** Servers of a test's own, and a proxy in front of each for whoever shall meet faults of the network. */
export class ProxiedServers implements AsyncDisposable {
  readonly mysql: DatabaseServer;
  readonly kafka: KafkaCluster;
  readonly mysqlProxy: Proxy;
  /** By broker. Clients that come through one are told to find the others through theirs. */
  readonly kafkaProxies: readonly Proxy[];
  readonly #stack: AsyncDisposableStack;

  private constructor(mysql: DatabaseServer, kafka: KafkaCluster, proxies: Proxy[], stack: AsyncDisposableStack) {
    this.mysql = mysql;
    this.kafka = kafka;
    [this.mysqlProxy, ...this.kafkaProxies] = proxies;
    this.#stack = stack;
  }

  static async start(mysqlOptions: DatabaseOptions, kafkaOptions: KafkaOptions): Promise<ProxiedServers> {
    await using stack = new AsyncDisposableStack();
    const proxies: Proxy[] = [];
    for (let i = 0; i <= (kafkaOptions.brokers ?? 1); i++) proxies.push(stack.use(await Proxy.open(NOWHERE)));
    const [mysqlProxy, ...kafkaProxies] = proxies;
    const mysql = stack.use(await startMysql(mysqlOptions));
    mysqlProxy.target = { host: mysql.host, port: mysql.port };
    const through = kafkaProxies.map(({ port }) => `127.0.0.1:${port}`);
    const kafka = stack.use(await startKafka({ ...kafkaOptions, listeners: { proxied: { through } } }));
    for (const [i, address] of kafka.listener('proxied').entries()) {
      const [host, port] = address.split(':');
      kafkaProxies[i].target = { host, port: Number(port) };
    }
    return new ProxiedServers(mysql, kafka, proxies, stack.move());
  }

  /** What a relay must be told to find everything through the proxies. */
  get config(): Config {
    return {
      mysql: { host: '127.0.0.1', port: this.mysqlProxy.port },
      kafka: { brokers: this.kafkaProxies.map(({ port }) => `127.0.0.1:${port}`) },
    };
  }

  get proxies(): readonly Proxy[] {
    return [this.mysqlProxy, ...this.kafkaProxies];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A frozen or throttled connection would keep the servers from stopping.
    for (const proxy of this.proxies) proxy.cut();
    await this.#stack[Symbol.asyncDispose]();
  }
}

/** Keeps one relay running, as a supervisor would; one that ends by itself is a failure of the test. */
export class KeptRelay {
  starts = 0;
  readonly failures: string[] = [];
  readonly #bed: RelayBed;
  readonly #config: Config;
  #relay: CliProcess | null = null;
  #isEnding = false;

  /** Null: the time that it is. */
  readonly clock: JumpingClock | null;

  constructor(bed: RelayBed, config: Config, clock: JumpingClock | null = null) {
    this.#bed = bed;
    this.#config = config;
    this.clock = clock;
  }

  get process(): CliProcess {
    if (this.#relay === null) throw new Error('the relay is not started');
    return this.#relay;
  }

  /** Without waiting for anything. */
  async start(): Promise<CliProcess> {
    const relay = await this.#bed.launch(this.#config, this.clock?.options);
    this.starts++;
    this.#isEnding = false;
    this.#relay = relay;
    void relay.exited.then(({ code, signal }) => {
      if (this.#relay !== relay || this.#isEnding) return;
      this.failures.push(`the relay ended by itself (${signal ?? code}):\n${relay.stderr().slice(-2_000)}`);
    });
    return relay;
  }

  /** SIGKILL: no goodbye, nothing saved. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    await this.process.kill();
  }

  /** SIGTERM; it must end with 0, or with 1 when something did not let it drain. */
  async stop(): Promise<number | null> {
    this.#isEnding = true;
    return (await this.process.kill('SIGTERM', 30_000)).code;
  }
}

const LOOK_MS = 200;

/**
 * Waits until no row waits and nothing is parked any more. Throws when the relay has ended by itself, or when for `stillMs`
 * nothing has become of anything; it says then what waits, and what the relay has said last.
 */
export async function expectSettled(bed: RelayBed, relay: KeptRelay, stillMs: number): Promise<void> {
  let seen = '';
  let sinceMs = performance.now();
  for (;;) {
    if (relay.failures.length > 0) throw new Error(relay.failures.join('\n'));
    const waiting = await bed.sql(
      `SELECT topic, status, COUNT(*) AS waiting, MIN(id) AS lowest FROM outbox
       WHERE status IN ('pending', 'processing') GROUP BY topic, status`,
    );
    const parked = await bed.sql('SELECT * FROM cdc_relay_parked');
    if (waiting.length + parked.length === 0) return;
    const now = JSON.stringify(waiting);
    if (now !== seen) [seen, sinceMs] = [now, performance.now()];
    if (performance.now() - sinceMs > stillMs) {
      const tail = relay.process.stderr().slice(-6_000);
      throw new Error(`for ${stillMs} ms the same waits: ${now}, parked ${JSON.stringify(parked)}\n${tail}`);
    }
    await sleep(LOOK_MS);
  }
}
