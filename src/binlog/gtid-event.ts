import { HEADER_BYTES, SERVER_ID_AT } from './event-header.ts';
import { u32, u56, u64 } from './little-endian.ts';

const MICROS = 1_000_000;

/**
 * GTID and ANONYMOUS_GTID: flags (1), source id (16), number (8), logical clock type (1), last committed (8),
 * sequence number (8), then the commit time on this server (7 bytes, microseconds; the top bit says that the original
 * server's time follows).
 */
const SID_AT = HEADER_BYTES + 1;
const GNO_AT = SID_AT + 16;
const COMMIT_TIME_AT = GNO_AT + 8 + 1 + 8 + 8;
const COMMIT_TIME_END = COMMIT_TIME_AT + 7;
const ORIGINAL_FOLLOWS = 2 ** 55;

/** Who opened a transaction; filled again for each, so that nothing is made per transaction. */
export class GroupStart {
  /** Null where GTIDs are off. */
  sid: string | null = null;
  gno = 0;
  commitMicros = 0;
  /** Where its first event begins. */
  file = '';
  begin = 0;
  /** MariaDB: one statement without a commit event. */
  standalone = false;

  readonly #uuid = Buffer.alloc(16);
  #uuidText = '';
  #domain = -1;
  #server = -1;
  #domainText = '';

  readGtid(b: Buffer, start: number, bodyEnd: number, seconds: number): void {
    this.none(seconds);
    if (bodyEnd < start + COMMIT_TIME_AT) throw new RangeError('GTID event too short');
    this.sid = this.#sidAt(b, start + SID_AT);
    this.gno = u64(b, start + GNO_AT);
    this.#commitTime(b, start, bodyEnd, seconds);
  }

  readAnonymous(b: Buffer, start: number, bodyEnd: number, seconds: number): void {
    this.none(seconds);
    this.#commitTime(b, start, bodyEnd, seconds);
  }

  /** A transaction without an event of this kind before it. */
  none(seconds: number): void {
    this.sid = null;
    this.gno = 0;
    this.commitMicros = seconds * MICROS;
    this.standalone = false;
  }

  /**
   * GTID_TAGGED: one message of the server's serialization library: version, size, last field that must be known,
   * then fields in ascending order, each preceded by its number: 0 flags, 1 source id (16 numbers), 2 number,
   * 3 tag, 4 last committed, 5 sequence number, 6 commit time (microseconds).
   */
  readTagged(b: Buffer, start: number, bodyEnd: number, seconds: number): void {
    this.none(seconds);
    const reader = new VarintReader(b, start + HEADER_BYTES, bodyEnd);
    if (reader.unsigned() !== 1) throw new RangeError('tagged GTID event of an unknown format');
    reader.unsigned();
    reader.unsigned();
    let uuid = '';
    let tag = '';
    let field = -1;
    while (reader.left > 0 && field < 6) {
      field = reader.unsigned();
      if (field === 0) reader.unsigned();
      else if (field === 1) uuid = reader.uuid();
      else if (field === 2) this.gno = reader.signed();
      else if (field === 3) tag = reader.text();
      else if (field === 4 || field === 5) reader.signed();
      else if (field === 6) this.commitMicros = reader.unsigned();
    }
    if (uuid === '') throw new RangeError('tagged GTID event without a source id');
    this.sid = tag === '' ? uuid : `${uuid}:${tag}`;
  }

  /** MariaDB: sequence number (8), domain (4), flags (1: bit 0 standalone); the server is the header's. */
  readMariadb(b: Buffer, start: number, bodyEnd: number, seconds: number): void {
    this.none(seconds);
    if (bodyEnd < start + HEADER_BYTES + 13) throw new RangeError('GTID event too short');
    const domain = u32(b, start + HEADER_BYTES + 8);
    const server = u32(b, start + SERVER_ID_AT);
    if (domain !== this.#domain || server !== this.#server) {
      this.#domain = domain;
      this.#server = server;
      this.#domainText = `${domain}-${server}`;
    }
    this.sid = this.#domainText;
    this.gno = u64(b, start + HEADER_BYTES);
    this.standalone = (b[start + HEADER_BYTES + 12] & 1) !== 0;
  }

  #commitTime(b: Buffer, start: number, bodyEnd: number, seconds: number): void {
    const micros = bodyEnd < start + COMMIT_TIME_END ? 0 : u56(b, start + COMMIT_TIME_AT) % ORIGINAL_FOLLOWS;
    this.commitMicros = micros === 0 ? seconds * MICROS : micros;
  }

  #sidAt(b: Buffer, p: number): string {
    const known = this.#uuid;
    for (let i = 0; i < 16; i++) {
      if (b[p + i] !== known[i] || this.#uuidText === '') {
        b.copy(known, 0, p, p + 16);
        this.#uuidText = uuidText(known);
        break;
      }
    }
    return this.#uuidText;
  }
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Integers of the serialization library: the low ones of the first byte count the bytes that follow it. */
class VarintReader {
  readonly #b: Buffer;
  readonly #end: number;
  #at: number;

  constructor(b: Buffer, at: number, end: number) {
    this.#b = b;
    this.#at = at;
    this.#end = end;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  unsigned(): number {
    const first = this.#b[this.#take(1)];
    let more = 0;
    while (more < 8 && ((first >> more) & 1) === 1) more++;
    const rest = this.#take(more);
    if (more === 8) return u64(this.#b, rest);
    let value = 0;
    for (let i = more - 1; i >= 0; i--) value = value * 256 + this.#b[rest + i];
    return value * 2 ** (7 - more) + (first >> (more + 1));
  }

  /** Never negative in what is read here. */
  signed(): number {
    return Math.floor(this.unsigned() / 2);
  }

  uuid(): string {
    const bytes = Buffer.alloc(16);
    for (let i = 0; i < 16; i++) bytes[i] = this.unsigned();
    return uuidText(bytes);
  }

  text(): string {
    const length = this.unsigned();
    const at = this.#take(length);
    return this.#b.toString('latin1', at, at + length);
  }

  #take(bytes: number): number {
    const at = this.#at;
    if (!(bytes >= 0 && bytes <= this.#end - at)) throw new RangeError('a field reaches beyond its event');
    this.#at += bytes;
    return at;
  }
}
