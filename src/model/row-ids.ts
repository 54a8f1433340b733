/**
 * Primary keys of rows of one outbox table, ascending: unsigned 64-bit integers, or, where the key is no integer, its
 * bytes (UTF-8 of a text column). Iterating gives each as something that can be compared: a bigint, or hexadecimal
 * digits.
 */
export type RowIds = BigUint64Array | ByteIds;

/** One of them. */
export type RowId = bigint | string;

/** Keys as bytes, one behind the other in one buffer; no object for each. */
export class ByteIds implements Iterable<string> {
  readonly #bytes: Buffer;
  /** Of the key i: where it begins and ends. */
  readonly #places: Uint32Array;

  private constructor(bytes: Buffer, places: Uint32Array) {
    this.#bytes = bytes;
    this.#places = places;
  }

  /** Pairs of begin and end in `bytes`, in any order; both belong to what is made. */
  static sorted(bytes: Buffer, places: Uint32Array): ByteIds {
    const order = Uint32Array.from({ length: places.length / 2 }, (_, i) => i * 2);
    order.sort((a, b) => bytes.compare(bytes, places[b], places[b + 1], places[a], places[a + 1]));
    const sorted = new Uint32Array(places.length);
    order.forEach((from, i) => {
      sorted[i * 2] = places[from];
      sorted[i * 2 + 1] = places[from + 1];
    });
    return new ByteIds(bytes, sorted);
  }

  static fromHex(keys: readonly string[]): ByteIds {
    const places = new Uint32Array(keys.length * 2);
    let end = 0;
    keys.forEach((key, i) => {
      places[i * 2] = end;
      places[i * 2 + 1] = end += key.length / 2;
    });
    return ByteIds.sorted(Buffer.from(keys.join(''), 'hex'), places);
  }

  get length(): number {
    return this.#places.length / 2;
  }

  subarray(from: number, to: number): ByteIds {
    return new ByteIds(this.#bytes, this.#places.subarray(from * 2, to * 2));
  }

  *[Symbol.iterator](): Iterator<string> {
    const places = this.#places;
    for (let i = 0; i < places.length; i += 2) yield this.#bytes.toString('hex', places[i], places[i + 1]);
  }
}

/** Of one kind and in any order; ascending again. */
export function rowIds(ids: readonly RowId[]): RowIds {
  return typeof ids[0] === 'string'
    ? ByteIds.fromHex(ids as readonly string[])
    : BigUint64Array.from(ids as readonly bigint[]).sort();
}

const UUID_DIGITS = 32;

/**
 * As people know it and as commands take it: digits; text of ASCII; 16 other bytes as a UUID; else hexadecimal digits.
 * For the log and what is sent: there nobody knows the type of the column.
 */
export function shownId(id: RowId): string {
  if (typeof id === 'bigint') return id.toString();
  if (/^(?:[2-6][0-9a-f]|7[0-9a-e])+$/.test(id)) return Buffer.from(id, 'hex').toString('latin1');
  return id.length === UUID_DIGITS ? id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') : id;
}
