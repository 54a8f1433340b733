import { isAscii } from '../encoding/charset.ts';
import { emptyField, emptyRow, Form, type Field, type OutboxRow } from '../model/row.ts';
import { readTimeMs } from './column-time.ts';
import { u16, u24, u32 } from './little-endian.ts';
import type { RowPlan } from './row-plan.ts';
import { PENDING, TakeKind, Target, type Take } from './takes.ts';
import type { TopicTemplate } from '../encoding/topic-template.ts';

/** Whose a row is. */
export const Verdict = { Deliver: 0, NotPending: 1, Delayed: 2 } as const;
export type Verdict = (typeof Verdict)[keyof typeof Verdict];

/** An empty value in a JSON column is what the server shows as `null`: type literal, value null. */
const JSON_NULL = Buffer.from([4, 0]);

/** At least the digits of 64 bits with a sign. */
const SCRATCH_BYTES = 32;

/** Fills one flyweight row from row images. Nothing is allocated per row. */
export class RowReader {
  readonly row: OutboxRow = emptyRow();
  verdict: Verdict = Verdict.Deliver;
  readonly #fields: Field[];
  /** By field: bytes that are not in the log as they go out. Valid until the next row. */
  readonly #scratch: Buffer[];

  constructor() {
    const { idBytes, topic, key, eventType, value, headers, idempotencyKey } = this.row;
    this.#fields = [idBytes, topic, key, eventType, value, headers, idempotencyKey];
    this.#scratch = this.#fields.map(() => Buffer.alloc(SCRATCH_BYTES));
  }

  /**
   * Reads the image at `p` and gives where the next one begins. `end` is the end of the images; `seconds` the time of
   * their event. Throws a RangeError when the image reaches beyond `end`: what the row holds is then nothing.
   */
  read(plan: RowPlan, b: Buffer, p: number, end: number, seconds: number): number {
    const { row } = this;
    const fields = this.#fields;
    const { columns, prefix, width, firstTake, takes, template } = plan;
    const parts = template === null ? 0 : template.columns.length;
    if (fields.length < Target.FirstPart + parts) this.#grow(Target.FirstPart + parts);
    for (let i = 0; i < Target.FirstPart + parts; i++) fields[i].form = Form.Null;
    row.outbox = plan.outbox;
    row.idLow = 0;
    row.idHigh = 0;
    row.createdAtMs = -1;
    row.isComplete = plan.missing === null;
    this.verdict = plan.hasStatus ? Verdict.NotPending : Verdict.Deliver;
    let delayed = false;
    const nulls = p;
    p += plan.nullBytes;
    for (let i = 0; i < columns; i++) {
      if (((b[nulls + (i >> 3)] >> (i & 7)) & 1) !== 0) continue;
      let length: number;
      switch (prefix[i]) {
        case 0:
          length = width[i];
          break;
        case 1:
          length = b[p];
          p += 1;
          break;
        case 2:
          length = u16(b, p);
          p += 2;
          break;
        case 3:
          length = u24(b, p);
          p += 3;
          break;
        default:
          length = u32(b, p);
          p += 4;
      }
      const start = p;
      p += length;
      if (!(p <= end)) break;
      const last = firstTake[i + 1];
      for (let t = firstTake[i]; t < last; t++) {
        const take = takes[t];
        const field = fields[take.target];
        switch (take.kind) {
          case TakeKind.Bytes:
            point(field, Form.Text, b, start, p);
            break;
          case TakeKind.Json:
            if (length === 0) point(field, Form.Json, JSON_NULL, 0, JSON_NULL.length);
            else point(field, Form.Json, b, start, p);
            break;
          case TakeKind.Padded:
            if (length === take.width) point(field, Form.Text, b, start, p);
            else pad(this.#room(take.target, take.width), take.width, field, b, start, length);
            break;
          case TakeKind.Uuid:
            // The encoder puts trailing zeros back that the log has left out.
            point(field, Form.Uuid, b, start, p);
            break;
          case TakeKind.Digits:
            digits(take, this.#room(take.target, SCRATCH_BYTES), field, b, start, length);
            break;
          case TakeKind.Label:
            label(take, field, b, start, length);
            break;
          case TakeKind.Foreign:
            if (take.charset!.isAsciiCompatible && isAscii(b, start, p)) point(field, Form.Text, b, start, p);
            else this.#write(field, take.target, take.charset!, length * take.charset!.growth, b, start, p);
            break;
          case TakeKind.Shown:
            this.#write(field, take.target, take.text!, take.text!.room(length), b, start, p);
            break;
          case TakeKind.Id:
            this.#id(take, b, start, length);
            break;
          case TakeKind.StatusLabel:
            if ((length === 1 ? b[start] : u16(b, start)) === take.pending) this.verdict = Verdict.Deliver;
            break;
          case TakeKind.StatusText:
            if (isPending(take, b, start, p)) this.verdict = Verdict.Deliver;
            break;
          case TakeKind.AvailableAt:
            delayed = readTimeMs(b, start, take.time, take.fractionBytes) >= (seconds + 1) * 1000;
            break;
          case TakeKind.CreatedAt:
            row.createdAtMs = readTimeMs(b, start, take.time, take.fractionBytes);
            break;
        }
      }
    }
    if (!(p <= end)) throw new RangeError('a row reaches beyond its event');
    if (delayed && this.verdict === Verdict.Deliver) this.verdict = Verdict.Delayed;
    if (plan.fixedTopic !== null) point(row.topic, Form.Text, plan.fixedTopic, 0, plan.fixedTopic.length);
    if (template !== null) this.#compose(template);
    return p;
  }

  #compose(template: TopicTemplate): void {
    const bytes = template.measure(this.#fields, Target.FirstPart);
    if (bytes < 0) return;
    const out = this.#room(Target.Topic, bytes);
    template.write(this.#fields, Target.FirstPart, out);
    point(this.row.topic, Form.Text, out, 0, bytes);
  }

  #room(target: number, bytes: number): Buffer {
    if (this.#scratch[target].length < bytes) this.#scratch[target] = Buffer.alloc(bytes);
    return this.#scratch[target];
  }

  #write(field: Field, target: number, text: Writes, most: number, b: Buffer, start: number, end: number): void {
    const out = this.#room(target, most);
    point(field, Form.Text, out, 0, text.write(out, 0, b, start, end));
  }

  #grow(fields: number): void {
    while (this.#fields.length < fields) {
      this.#fields.push(emptyField());
      this.#scratch.push(Buffer.alloc(SCRATCH_BYTES));
    }
  }

  #id(take: Take, b: Buffer, p: number, length: number): void {
    const { row } = this;
    row.idLow = low(b, p, length);
    row.idHigh = length === 8 ? u32(b, p + 4) : 0;
    if (!take.unsigned && b[p + length - 1] > 127) throw new RangeError('a negative primary key');
  }
}

/** What writes a value as text. */
interface Writes {
  write(out: Buffer, at: number, source: Buffer, start: number, end: number): number;
}

function point(field: Field, form: Form, buffer: Buffer, start: number, end: number): void {
  field.form = form;
  field.buffer = buffer;
  field.start = start;
  field.end = end;
}

function low(b: Buffer, p: number, length: number): number {
  switch (length) {
    case 1:
      return b[p];
    case 2:
      return u16(b, p);
    case 3:
      return u24(b, p);
    default:
      return u32(b, p);
  }
}

function pad(scratch: Buffer, width: number, field: Field, b: Buffer, start: number, length: number): void {
  if (length > width) throw new RangeError('a value is longer than its column');
  for (let i = 0; i < width; i++) scratch[i] = i < length ? b[start + i] : 0;
  point(field, Form.Text, scratch, 0, width);
}

function label(take: Take, field: Field, b: Buffer, start: number, length: number): void {
  const number = length === 1 ? b[start] : u16(b, start);
  if (number > take.labels.length) throw new RangeError('a label that its column does not have');
  // 0 is the server's mark of an invalid value, shown as an empty text.
  const text = number === 0 ? NO_TEXT : take.labels[number - 1];
  point(field, Form.Text, text, 0, text.length);
}

const NO_TEXT = Buffer.alloc(0);

function digits(take: Take, scratch: Buffer, field: Field, b: Buffer, p: number, length: number): void {
  const negative = !take.unsigned && b[p + length - 1] > 127;
  const wide = length === 8 && u32(b, p + 4) >= 0x20_0000;
  if (negative || wide) {
    const value = length === 8 ? b.readBigInt64LE(p) : b.readIntLE(p, length);
    const text = (take.unsigned && length === 8 ? BigInt.asUintN(64, BigInt(value)) : value).toString();
    point(field, Form.Text, scratch, 0, scratch.write(text, 'latin1'));
    return;
  }
  let value = low(b, p, length) + (length === 8 ? u32(b, p + 4) * 0x1_0000_0000 : 0);
  let at = scratch.length;
  do {
    const rest = Math.floor(value / 10);
    scratch[--at] = 48 + (value - rest * 10);
    value = rest;
  } while (value > 0);
  point(field, Form.Text, scratch, at, scratch.length);
}

function isPending(take: Take, b: Buffer, start: number, end: number): boolean {
  if (take.charset !== null && !take.charset.isAsciiCompatible) {
    const text = Buffer.alloc((end - start) * take.charset.growth);
    return PENDING.equals(text.subarray(0, take.charset.write(text, 0, b, start, end)));
  }
  if (end - start !== PENDING.length) return false;
  for (let i = 0; i < PENDING.length; i++) if (b[start + i] !== PENDING[i]) return false;
  return true;
}
