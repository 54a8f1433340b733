import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BinlogSource } from '../../src/binlog/binlog-source.ts';
import { RelayError, type FaultCode } from '../../src/model/fault.ts';
import type { Position } from '../../src/model/position.ts';
import { BinlogBed, checkpointAt, insertOf, plain } from '../integration/binlog/binlog-bed.ts';
import { expectNextDumpBegins } from '../integration/binlog/hanging-dump.ts';
import { Proxy } from '../stack/proxy.ts';
import { startMysql } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

let bed: BinlogBed;
beforeAll(async () => (bed = await BinlogBed.open(await startMysql())));
afterAll(() => bed[Symbol.asyncDispose]());

/** A stream that is pulled all the time. */
class Reading implements AsyncDisposable {
  readonly keys: (string | null)[] = [];
  fault: RelayError['fault'] | null = null;
  /** Ended without a fault. */
  returned = false;
  #gate = Promise.withResolvers<undefined>();
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;

  constructor(source: BinlogSource, from: Position) {
    this.#gate.resolve(undefined);
    this.#done = this.#read(source, from);
  }

  /** Pulls no further than the group that comes next. */
  hold(): void {
    this.#gate = Promise.withResolvers<undefined>();
  }

  goOn(): void {
    this.#gate.resolve(undefined);
  }

  abort(): void {
    this.#abort.abort();
  }

  async ends(withinMs: number): Promise<RelayError['fault'] | null> {
    await until(() => this.fault !== null || this.returned, { withinMs, what: 'the end of the stream', everyMs: 5 });
    return this.fault;
  }

  async sees(key: string): Promise<void> {
    await until(() => this.keys.includes(key), { withinMs: 20_000, what: `row ${key}`, everyMs: 5 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.goOn();
    this.abort();
    await this.#done;
  }

  async #read(source: BinlogSource, from: Position): Promise<void> {
    try {
      for await (const group of source.stream(checkpointAt(from), this.#abort.signal)) {
        for (const transaction of group.transactions)
          this.keys.push(...(await plain(transaction)).rows.map(({ key }) => key));
        await this.#gate.promise;
      }
      this.returned = true;
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      this.fault = error.fault;
    }
  }
}

const COM_BINLOG_DUMP = 0x12;

/** Connections of the source on the server. */
async function dumps(): Promise<number[]> {
  const rows = await bed.sql("SELECT ID AS id FROM performance_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'");
  return rows.map((row) => Number(row['id']));
}

describe('a stream that falls silent', () => {
  it('I1 ends when the network freezes, without a word to either side', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    const source = bed.source({ mysql: { port: proxy.port, heartbeatMs: 400 } });
    await using reading = new Reading(source, await bed.head());
    await bed.sql(insertOf('before'));
    await reading.sees('before');
    const frozenAt = performance.now();
    proxy.freeze();
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_SILENT', disposition: 'retry' });
    const took = performance.now() - frozenAt;
    expect(took).toBeGreaterThan(800);
    expect(took).toBeLessThan(15_000);
  });

  it('I1 ends when the server freezes', async () => {
    await using reading = new Reading(bed.source({ mysql: { heartbeatMs: 400 } }), await bed.head());
    await bed.sql(insertOf('warm'));
    await reading.sees('warm');
    await bed.server!.freeze();
    try {
      expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_SILENT', disposition: 'retry' });
    } finally {
      await bed.server!.thaw();
    }
  });

  it('does not begin on a server that does not answer', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    proxy.freeze();
    const mysql = { port: proxy.port, connectTimeoutMs: 300, queryTimeoutMs: 300 };
    await using reading = new Reading(bed.source({ mysql }), await bed.head());
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_CONNECTION_LOST', disposition: 'retry' });
  });

  it('lives on heartbeats while nothing is written', async () => {
    await using reading = new Reading(bed.source({ mysql: { heartbeatMs: 300 } }), await bed.head());
    await bed.sql(insertOf('first'));
    await reading.sees('first');
    const quietUntil = performance.now() + 1_500;
    await until(() => performance.now() > quietUntil, { withinMs: 20_000, what: 'a quiet while' });
    await bed.sql(insertOf('second'));
    await reading.sees('second');
  });

  it('I1 is not silent while one event takes its time over a slow line', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    await bed.sql('CREATE TABLE blobs (content LONGBLOB)');
    await using reading = new Reading(bed.source({ mysql: { port: proxy.port, heartbeatMs: 300 } }), await bed.head());
    await bed.sql(insertOf('warm'));
    await reading.sees('warm');
    proxy.bytesPerSecond = 5_000_000;
    await bed.sql("INSERT INTO blobs VALUES (REPEAT('x', 8000000))");
    await bed.sql(insertOf('behind'));
    await until(() => reading.fault !== null || reading.keys.includes('behind'), {
      withinMs: 20_000,
      what: 'the row behind a large event',
    });
    expect(reading.fault).toBeNull();
  });

  it('I1 waits for a dump to begin as long as for a statement, without heartbeats', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    const from = await bed.head();
    await bed.sql(insertOf('waits'));
    let asked = 0;
    proxy.marks = (chunk) => {
      const isDump = chunk.length > 4 && chunk[3] === 0 && chunk[4] === COM_BINLOG_DUMP;
      if (isDump) asked++;
      return isDump;
    };
    // As where the server has the list of its files locked: it takes the command, and does not answer yet.
    proxy.freezeSome();
    const mysql = { port: proxy.port, heartbeatMs: 300, queryTimeoutMs: 6_000 };
    await using reading = new Reading(bed.source({ mysql }), from);
    await until(() => asked === 1, { withinMs: 20_000, what: 'the command' });
    const beganMs = performance.now();
    await until(() => performance.now() - beganMs > 1_500, { withinMs: 20_000, what: 'five heartbeats' });
    proxy.thaw();
    await reading.sees('waits');
    expect(reading.fault).toBeNull();

    proxy.freezeSome();
    await using never = new Reading(bed.source({ mysql: { ...mysql, queryTimeoutMs: 500 } }), from);
    expect(await never.ends(20_000)).toMatchObject({ code: 'BINLOG_SILENT', disposition: 'retry' });
  });

  it('is not silent while nobody pulls', async () => {
    const source = bed.source({ mysql: { heartbeatMs: 300 } });
    await using reading = new Reading(source, await bed.head());
    reading.hold();
    await bed.sql(insertOf('held'));
    await reading.sees('held');
    const text = 'x'.repeat(60_000);
    for (let n = 0; n < 20; n++) {
      await bed.sql('INSERT INTO outbox (topic, aggregate_id, payload) VALUES (?, ?, JSON_QUOTE(?))', [
        't',
        `k${n}`,
        text,
      ]);
    }
    const heldUntil = performance.now() + 1_500;
    await until(() => performance.now() > heldUntil, { withinMs: 20_000, what: 'a while without pulling' });
    expect(reading.fault).toBeNull();
    reading.goOn();
    await reading.sees('k19');
    await bed.sql(insertOf('after'));
    await reading.sees('after');
  });
});

it('S15 I3 a stream begins where the server hangs in a write to the one before, and ends that one', async () => {
  await expectNextDumpBegins(bed);
});

describe('a stream that is ended', () => {
  it('by KILL of its dump thread, and leaves no connection', async () => {
    await using reading = new Reading(bed.source(), await bed.head());
    await bed.sql(insertOf('seen'));
    await reading.sees('seen');
    const [id] = await dumps();
    await bed.sql(`KILL ${id}`);
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_CONNECTION_LOST', disposition: 'retry' });
    await until(async () => (await dumps()).length === 0, { withinMs: 20_000, what: 'no dump thread' });
  });

  it('by a reset of the connection', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    await using reading = new Reading(bed.source({ mysql: { port: proxy.port } }), await bed.head());
    await bed.sql(insertOf('seen'));
    await reading.sees('seen');
    proxy.cut();
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_CONNECTION_LOST', disposition: 'retry' });
  });

  it('in the middle of an event, and hands on what was whole', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    const from = await bed.head();
    await bed.sql(insertOf('whole'));
    await bed.sql(
      "INSERT INTO outbox (topic, aggregate_id, payload) VALUES ('t', 'half', JSON_QUOTE(REPEAT('x', 900000)))",
    );
    proxy.cutAfter(300_000, 'down');
    await using reading = new Reading(bed.source({ mysql: { port: proxy.port } }), from);
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_CONNECTION_LOST' });
    expect(reading.keys).toEqual(['whole']);
  });

  it('by abort: returns, cuts both connections, and nothing keeps the process', async () => {
    const reading = new Reading(bed.source(), await bed.head());
    await bed.sql(insertOf('seen'));
    await reading.sees('seen');
    expect(await dumps()).toHaveLength(1);
    reading.abort();
    expect(await reading.ends(1_000)).toBeNull();
    // The server finds out when it next writes: a heartbeat.
    await until(async () => (await dumps()).length === 0, { withinMs: 20_000, what: 'no dump thread' });
  });

  it('by abort while it connects', async () => {
    await using proxy = await Proxy.open(bed.bed.mysql);
    proxy.freeze();
    const reading = new Reading(bed.source({ mysql: { port: proxy.port } }), await bed.head());
    await until(() => proxy.accepted > 0, { withinMs: 20_000, what: 'a connection' });
    reading.abort();
    expect(await reading.ends(1_000)).toBeNull();
  });

  it('by a stop of the server', async () => {
    await using reading = new Reading(bed.source(), await bed.head());
    await bed.sql(insertOf('seen'));
    await reading.sees('seen');
    await bed.server!.stop();
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_CONNECTION_LOST', disposition: 'retry' });
    await bed.server!.start();
    await using again = new Reading(bed.source(), await bed.head());
    await bed.sql(insertOf('again'));
    await again.sees('again');
  });

  it('by a break out of the loop', async () => {
    const source = bed.source();
    await bed.sql(insertOf('x'));
    const from = await bed.head();
    await bed.sql(insertOf('seen'));
    for await (const group of source.stream(checkpointAt(from), new AbortController().signal)) {
      expect(group.transactions).toHaveLength(1);
      break;
    }
    await until(async () => (await dumps()).length === 0, { withinMs: 20_000, what: 'no dump thread' });
  });
});

describe('a stream that cannot begin', () => {
  it.each<[string, (head: Position) => Position, RegExp]>([
    ['B5 behind the end', ({ file, offset }) => ({ file, offset: offset + 10_000_000 }), /cannot read from binlog\./],
    [
      'B6 inside an event',
      ({ file, offset }) => ({ file, offset: offset - 3 }),
      /not an event boundary.*max_allowed_packet/,
    ],
    ['B4 in a file that is gone', ({ offset }) => ({ file: 'binlog.999999', offset }), /purged.*another server/],
    ['B7 past 4 GiB', ({ file }) => ({ file, offset: 2 ** 32 }), /below 4 GiB/],
  ])('%s', async (_, change, detail) => {
    await bed.sql(insertOf('x'));
    await using reading = new Reading(bed.source(), change(await bed.head()));
    const fault = await reading.ends(20_000);
    expect(fault).toMatchObject({ code: 'BINLOG_POSITION_UNUSABLE', disposition: 'halt' });
    expect(fault?.detail).toMatch(detail);
  });

  it('with the id of a reader that is there: it is that one that ends (I3)', async () => {
    await using first = new Reading(bed.source(), await bed.head());
    await bed.sql(insertOf('one'));
    await first.sees('one');
    await using second = new Reading(bed.source(), await bed.head());
    expect(await first.ends(20_000)).toMatchObject({ code: 'BINLOG_SERVER_ID_CLASH', disposition: 'halt' });
    await bed.sql(insertOf('two'));
    await second.sees('two');
  });

  it.each<[string, string, FaultCode]>([
    ['without REPLICATION SLAVE', "GRANT SELECT ON *.* TO 'reader'@'%'", 'BINLOG_NOT_PERMITTED'],
    ['with a wrong password', "ALTER USER 'reader'@'%' IDENTIFIED BY 'other'", 'MYSQL_ACCESS_DENIED'],
  ])('I6 %s', async (_, statement, code) => {
    await bed.sql(`DROP USER IF EXISTS 'reader'@'%'; CREATE USER 'reader'@'%' IDENTIFIED BY 'secret'; ${statement}`);
    const source = bed.source({ mysql: { user: 'reader', password: 'secret' } });
    await using reading = new Reading(source, await bed.head());
    const fault = await reading.ends(20_000);
    expect(fault).toMatchObject({ code, disposition: 'halt' });
    expect(fault?.detail).not.toContain('secret');
  });

  it('with REPLICATION SLAVE alone, as the log names its columns', async () => {
    await bed.sql(`DROP USER IF EXISTS 'reader'@'%'; CREATE USER 'reader'@'%' IDENTIFIED BY 'secret';
                   GRANT REPLICATION SLAVE ON *.* TO 'reader'@'%'`);
    const source = bed.source({ mysql: { user: 'reader', password: 'secret' } });
    await using reading = new Reading(source, await bed.head());
    await bed.sql(insertOf('seen'));
    await reading.sees('seen');
  });

  it('on a server without a binlog', async () => {
    const options = { flags: ['--skip-log-bin', '--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'] };
    await using other = await BinlogBed.open(await startMysql(options));
    await using reading = new Reading(other.source(), { file: 'binlog.000001', offset: 4 });
    expect(await reading.ends(10_000)).toMatchObject({ code: 'BINLOG_DISABLED', disposition: 'halt' });
  });

  it('where nobody listens', async () => {
    const proxy = await Proxy.open(bed.bed.mysql);
    const { port } = proxy;
    await proxy[Symbol.asyncDispose]();
    await using reading = new Reading(bed.source({ mysql: { port } }), await bed.head());
    expect(await reading.ends(20_000)).toMatchObject({ code: 'BINLOG_CONNECTION_LOST', disposition: 'retry' });
  });
});

describe('a stream that nobody pulls', () => {
  it('holds little memory, whatever waits on the server', async () => {
    await bed.session(
      'SET cte_max_recursion_depth = 100000',
      'CREATE TABLE numbers AS WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 500) SELECT n FROM c',
    );
    const from = await bed.head();
    for (let n = 0; n < 200; n++) {
      await bed.sql(`INSERT INTO outbox (topic, aggregate_id, payload)
                     SELECT 'orders', n, JSON_QUOTE(REPEAT('x', 1000)) FROM numbers`);
    }
    await bed.sql(insertOf('last'));
    await using reading = new Reading(bed.source(), from);
    reading.hold();
    await reading.sees('1');
    const held = process.memoryUsage().arrayBuffers;
    const heldUntil = performance.now() + 1_000;
    await until(() => performance.now() > heldUntil, { withinMs: 20_000, what: 'a while without pulling' });
    expect(process.memoryUsage().arrayBuffers - held).toBeLessThan(16 * 1024 * 1024);
    reading.goOn();
    await until(() => reading.keys.includes('last'), { withinMs: 30_000, what: 'the last row' });
    expect(reading.keys.filter((key) => key === '500')).toHaveLength(200);
  });
});
