import ZongJi from '@vlasky/zongji';
import type { Connection, ConnectionOptions } from 'mysql2';
import { fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { formatPosition, MAX_START_OFFSET, type Position } from '../model/position.ts';
import type { MysqlSettings, OutboxSettings } from '../model/settings.ts';
import { connectionOptions } from '../mysql/connection.ts';
import { loggedIn, loginFault } from '../mysql/login.ts';
import { SERVER_UUID, serverUuidIn } from '../mysql/server-uuid.ts';
import { ask } from './ask.ts';
import { checkColumns } from './column-check.ts';
import { binlogDisabled, dumpFault } from './dump-faults.ts';
import { CLOSES_WITHIN_MS, type EarlierDump, endHangingDumps, takeDumpLock } from './earlier-dumps.ts';
import { askFacts, type LogQuestion, type ServerFacts } from './server-facts.ts';

/** While the socket is paused the server waits with a full buffer; it must not take that for a dead client. */
const NET_WRITE_TIMEOUT_SECONDS = 86_400;

const EVENT_MARKER = 0x00;
const ERROR_MARKER = 0xff;
const PACKET_HEADER_BYTES = 4;

/** mysql2's packet: one object, used again for the next packet. The payload begins behind four bytes of header. */
interface Packet {
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
  asError(encoding: string): Error;
}

/** What of mysql2's connection is used beside its public face. */
type Wire = Connection & {
  handlePacket: (packet?: Packet) => void;
  readonly stream: {
    pause(): unknown;
    resume(): unknown;
    destroy(): unknown;
    on(event: 'data', listener: () => void): unknown;
  };
};

/** Takes what the dump gives; called from within the socket's data event. */
export interface DumpSink {
  /** One event, `start` at its header. The buffer belongs to the sink from here on. */
  event(buffer: Buffer, start: number, end: number): void;
  /** Bytes have come, of an event or of a part of one; called behind the events that are whole with them. */
  heard(): void;
  /** The dump has ended; nothing follows. */
  ended(reason: RelayError): void;
}

export interface DumpOptions {
  readonly mysql: MysqlSettings;
  readonly outboxes: readonly OutboxSettings[];
  readonly from: Position;
  /** What is to be asked about the log too. */
  readonly question: LogQuestion;
  /** Whose log is to be read; null: whosever it is. */
  readonly serverUuid: string | null;
  readonly signal: AbortSignal;
  readonly log: Log;
}

export interface OpenDump {
  readonly dump: DumpConnection;
  readonly facts: ServerFacts;
}

/**
 * One dump of the binlog over zongji: it connects, negotiates checksums and sends the command; from then on its
 * connection's packets come here and never reach its parser. Used once: zongji's caches outlive a restart.
 */
export class DumpConnection {
  readonly #zongji: ZongJi;
  readonly #from: Position;
  #sink: DumpSink | null = null;
  #clearing: NodeJS.Timeout | null = null;

  private constructor(zongji: ZongJi, from: Position) {
    this.#zongji = zongji;
    this.#from = from;
  }

  /** Throws a RelayError, and has closed what it opened. Nothing arrives before `start`. */
  static async open({ mysql, from, outboxes, question, serverUuid, signal, log }: DumpOptions): Promise<OpenDump> {
    if (from.offset > MAX_START_OFFSET) {
      const at = formatPosition(from);
      throw fault('BINLOG_POSITION_UNUSABLE', 'halt', `cannot read from ${at}: a dump begins below 4 GiB of a file`);
    }
    const zongji = new ZongJi(optionsOf(mysql));
    const dump = new DumpConnection(zongji, from);
    const giveUp = AbortSignal.any([signal, AbortSignal.timeout(mysql.connectTimeoutMs + mysql.queryTimeoutMs)]);
    const { promise: ready, resolve, reject } = Promise.withResolvers<undefined>();
    const onGiveUp = () => reject(fault('BINLOG_CONNECTION_LOST', 'retry', 'the server does not answer'));
    giveUp.addEventListener('abort', onGiveUp);
    zongji.on('error', reject);
    zongji.on('ready', () => {
      // The dump command is sent when this returns.
      dump.#tap();
      resolve(undefined);
    });
    try {
      giveUp.throwIfAborted();
      zongji.start({ serverId: mysql.serverId, filename: from.file, position: from.offset });
      const [facts, earlier] = await Promise.all([
        dump.#ask(outboxes, question),
        dump.#announce(mysql, serverUuid),
        ready,
      ]);
      dump.#leaveControl(earlier, log);
      loggedIn(mysql);
      return { dump, facts };
    } catch (error) {
      dump.close();
      throw loginFault(mysql, dumpFault(error, from), error);
    } finally {
      giveUp.removeEventListener('abort', onGiveUp);
      zongji.off('error', reject);
    }
  }

  /** To be called before anything else is awaited. */
  start(sink: DumpSink): void {
    this.#sink = sink;
    this.#wire.stream.on('data', () => this.#sink?.heard());
  }

  pause(): void {
    this.#wire.stream.pause();
  }

  resume(): void {
    this.#wire.stream.resume();
  }

  /** Cuts both connections; asks the server nothing, which may not be there to answer. */
  close(): void {
    const zongji = this.#zongji;
    this.#sink = null;
    if (this.#clearing !== null) clearTimeout(this.#clearing);
    zongji.stopped = true;
    zongji.removeAllListeners();
    zongji.on('error', () => undefined);
    for (const connection of [zongji.connection, zongji.ctrlConnection]) cut(connection);
  }

  get #wire(): Wire {
    if (this.#zongji.connection === null) throw new Error('the dump connection is gone');
    return this.#zongji.connection as Wire;
  }

  /** zongji uses both connections for one thing after the other: this is answered before it is ready. */
  async #ask(outboxes: readonly OutboxSettings[], question: LogQuestion): Promise<ServerFacts> {
    if (this.#zongji.ctrlConnection === null) throw new Error('no control connection');
    const facts = await askFacts(this.#zongji.ctrlConnection, outboxes, question);
    if (!facts.logBin) throw binlogDisabled();
    checkColumns(facts.outboxes);
    return facts;
  }

  /** On the connection of the dump itself: behind one address there may be another server after each connect. */
  async #announce(
    { heartbeatMs, serverId }: MysqlSettings,
    serverUuid: string | null,
  ): Promise<readonly EarlierDump[]> {
    const [, variables, earlier] = await Promise.all([
      ask(this.#wire, preamble(heartbeatMs)),
      ask(this.#wire, SERVER_UUID),
      takeDumpLock(this.#wire, serverId),
    ]);
    const found = serverUuidIn(variables);
    if (serverUuid === null || found === serverUuid) return earlier;
    throw fault('MYSQL_FOREIGN_SERVER', 'renew', `the binlog is that of server ${found}, not of ${serverUuid}`);
  }

  #tap(): void {
    this.#zongji.on('error', (error) => this.#sink?.ended(dumpFault(error, this.#from)));
    const wire = this.#wire;
    const original = wire.handlePacket.bind(wire);
    wire.handlePacket = (packet) => {
      // No packet: the command is to be sent.
      if (packet === undefined) original();
      else this.#packet(packet);
    };
  }

  /** Table maps come with the stream; an idle second connection would only be one more to lose. */
  #leaveControl(earlier: readonly EarlierDump[], log: Log): void {
    const control = this.#zongji.ctrlConnection;
    if (earlier.length === 0 || control === null) {
      cut(control);
      return;
    }
    mute(control);
    this.#clearing = setTimeout(() => {
      void endHangingDumps(control, earlier, log).finally(() => cut(control));
    }, CLOSES_WITHIN_MS);
  }

  #packet(packet: Packet): void {
    const { buffer, start, end } = packet;
    const marker = buffer[start + PACKET_HEADER_BYTES];
    if (marker === EVENT_MARKER) this.#sink?.event(buffer, start + PACKET_HEADER_BYTES + 1, end);
    else if (marker === ERROR_MARKER) this.#sink?.ended(dumpFault(packet.asError('utf8'), this.#from));
    else this.#sink?.ended(fault('BINLOG_CONNECTION_LOST', 'retry', 'the server has ended the dump'));
  }
}

function optionsOf(mysql: MysqlSettings): ConnectionOptions {
  try {
    return connectionOptions(mysql);
  } catch (error) {
    throw error instanceof RelayError ? loginFault(mysql, error, error) : error;
  }
}

function preamble(heartbeatMs: number): string {
  const nanoseconds = heartbeatMs * 1_000_000;
  return (
    `SET @master_heartbeat_period = ${nanoseconds}, @source_heartbeat_period = ${nanoseconds}, ` +
    `SESSION net_write_timeout = ${NET_WRITE_TIMEOUT_SECONDS}`
  );
}

function mute(connection: Connection): void {
  connection.removeAllListeners('error');
  connection.on('error', () => undefined);
}

function cut(connection: Connection | null): void {
  if (connection === null) return;
  mute(connection);
  connection.destroy();
  (connection as Wire).stream.destroy();
}
