import { randomUUID } from 'node:crypto';
import type { Admin } from 'kafkajs';
import { BATCH_HEADER_BYTES, compressRecords, sealBatch } from '../../src/encoding/record-batch.ts';
import { recordBound, writeRecord } from '../../src/encoding/record.ts';
import { createPublisher } from '../../src/kafka/publisher.ts';
import type { Log, LogFields } from '../../src/model/log.ts';
import type { ProducerIdentity, Publisher, SealedBatch, SendOutcome } from '../../src/model/publisher.ts';
import { emptyRow, Form } from '../../src/model/row.ts';
import { type KafkaCounts, newKafkaCounts } from '../../src/model/server-counts.ts';
import type { Compression, KafkaSettings } from '../../src/model/settings.ts';
import { kafkaClient } from './kafka-client.ts';
import { createTopics, topicNames, topicOffsets } from './patient-admin.ts';
import { eventually } from './until.ts';

export function kafkaSettings(brokers: readonly string[], over: Partial<KafkaSettings> = {}): KafkaSettings {
  return {
    brokers,
    clientId: 'cdc-relay-test',
    tls: null,
    sasl: null,
    compression: 'none',
    batchBytes: 1 << 20,
    batchRecords: 2000,
    connectTimeoutMs: 10_000,
    requestTimeoutMs: 20_000,
    createTopics: null,
    ...over,
  };
}

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields;
}

export class RecordedLog implements Log {
  readonly lines: LogLine[] = [];
  debug = this.#at('debug');
  info = this.#at('info');
  warn = this.#at('warn');
  error = this.#at('error');

  child(): Log {
    return this;
  }

  /** Everything that was logged, as one text. */
  text(): string {
    return this.lines.map((line) => JSON.stringify(line)).join('\n');
  }

  #at(level: string) {
    return (event: string, fields: LogFields = {}): void => void this.lines.push({ level, event, fields });
  }
}

/** A connected publisher; closed at the end of the test's block. */
export async function connected(
  brokers: readonly string[],
  over: Partial<KafkaSettings> = {},
  log: Log = new RecordedLog(),
  counts: KafkaCounts = newKafkaCounts(),
): Promise<Publisher & AsyncDisposable> {
  const publisher = createPublisher(kafkaSettings(brokers, over), log, counts);
  await eventually(() => publisher.connect(new AbortController().signal), {
    withinMs: 20_000,
    what: 'a connection to Kafka',
  });
  return Object.assign(publisher, { [Symbol.asyncDispose]: () => publisher.close(1000) });
}

/** A broker that has just started says for a moment that it has no producer ids yet. */
export function newProducer(publisher: Publisher): Promise<ProducerIdentity> {
  return eventually(() => publisher.newProducer(), { withinMs: 20_000, what: 'a producer id' });
}

export interface BatchRecipe {
  readonly topic: string;
  readonly partition?: number;
  readonly producer: ProducerIdentity;
  readonly sequence?: number;
  readonly values: readonly string[];
  readonly compression?: Compression;
}

/** A real record batch; each value is its own key too. */
export async function makeBatch(recipe: BatchRecipe): Promise<SealedBatch> {
  const { topic, partition = 0, producer, sequence = 0, values, compression = 'none' } = recipe;
  const row = emptyRow();
  const timestampMs = Date.now();
  let buffer = Buffer.alloc(values.reduce((bytes, value) => bytes + 200 + 2 * Buffer.byteLength(value), 1000));
  let end = BATCH_HEADER_BYTES;
  for (const [i, value] of values.entries()) {
    const text = Buffer.from(value);
    for (const field of [row.key, row.value]) {
      Object.assign(field, { form: Form.Text, buffer: text, start: 0, end: text.length });
    }
    const id = Buffer.from(`${producer.id}-${sequence + i}`);
    Object.assign(row.idempotencyKey, { form: Form.Text, buffer: id, start: 0, end: id.length });
    if (buffer.length - end < recordBound(row)) throw new Error('the test has guessed the size wrong');
    end = writeRecord(buffer, end, row, i, 0);
  }
  if (compression !== 'none') {
    buffer = (await compressRecords(buffer, end, compression)) as Buffer<ArrayBuffer>;
    end = buffer.length;
  }
  sealBatch(buffer, end, {
    records: values.length,
    baseTimestampMs: timestampMs,
    maxTimestampMs: timestampMs,
    producer,
    baseSequence: sequence,
    compression,
  });
  return { topic, partition, bytes: buffer.subarray(0, end), records: values.length };
}

/** The fault's code, or how it was acked. */
export function told(outcome: SendOutcome): string {
  return outcome.as === 'acked'
    ? `acked${outcome.duplicate ? ' duplicate' : ''}`
    : `${outcome.as} ${outcome.fault.code} ${outcome.fault.disposition}`;
}

/** Topics of one test file, and what is in them. */
export class TopicCorner implements AsyncDisposable {
  readonly #admin: Admin;
  readonly #created: string[] = [];

  private constructor(admin: Admin) {
    this.#admin = admin;
  }

  static async open(brokers: readonly string[]): Promise<TopicCorner> {
    const admin = kafkaClient(brokers).admin();
    await admin.connect();
    return new TopicCorner(admin);
  }

  get admin(): Admin {
    return this.#admin;
  }

  /** A name that nobody else uses. */
  unused(name = 'topic'): string {
    const topic = `${name}-${randomUUID()}`;
    this.#created.push(topic);
    return topic;
  }

  async create(partitions = 1, config: Readonly<Record<string, string>> = {}): Promise<string> {
    const topic = this.unused();
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
    await createTopics(this.#admin, [{ topic, numPartitions: partitions, configEntries }]);
    return topic;
  }

  /** Records in the topic, by partition. */
  async counts(topic: string): Promise<number[]> {
    const offsets = await topicOffsets(this.#admin, topic);
    return offsets.sort((a, b) => a.partition - b.partition).map(({ high }) => Number(high));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const existing = new Set(await topicNames(this.#admin));
    const topics = this.#created.filter((topic) => existing.has(topic));
    if (topics.length > 0) await this.#admin.deleteTopics({ topics });
    await this.#admin.disconnect();
  }
}
