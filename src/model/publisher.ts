import type { Fault } from './fault.ts';

/** A producer identity as the broker gave it (InitProducerId). Sequence numbers count per identity and partition. */
export interface ProducerIdentity {
  readonly id: bigint;
  readonly epoch: number;
}

/** A finished record batch (magic 2) with producer id, sequence number and CRC in place: never changed again. */
export interface SealedBatch {
  readonly topic: string;
  readonly partition: number;
  readonly bytes: Buffer;
  readonly records: number;
}

/**
 * What became of a send.
 * - acked: appended and replicated as `acks=all` asks, or already there (duplicate sequence number)
 * - refused: nothing was appended: the broker said why, or nothing has been sent
 * - uncertain: nobody knows (time-out, connection lost in mid-request, leadership lost after the append); only the
 *   identical bytes may follow
 */
export type SendOutcome =
  | { readonly as: 'acked'; readonly duplicate: boolean }
  | { readonly as: 'refused'; readonly fault: Fault }
  | { readonly as: 'uncertain'; readonly fault: Fault };

export type TopicState =
  | {
      readonly as: 'known';
      readonly partitions: number;
      /** The largest batch that its brokers take; null where they do not tell. */
      readonly maxBatchBytes: number | null;
    }
  | { readonly as: 'unusable'; readonly fault: Fault };

/** Kafka as the engine sees it: finished batches out, nothing else. */
export interface Publisher {
  /** Connects; throws a `RelayError` (halt for wrong credentials, retry otherwise). */
  connect(signal: AbortSignal): Promise<void>;
  /**
   * The topic's partition count; creates the topic only where that is configured. A known one is cached; `refresh`
   * asks again. Never rejects: `unusable` with disposition retry means that no broker could say.
   */
  topic(name: string, refresh?: boolean): Promise<TopicState>;
  /** A fresh producer identity. Throws a `RelayError`. */
  newProducer(): Promise<ProducerIdentity>;
  /** Sends one batch. Resolves within the request time-out whatever happens; never rejects. */
  send(batch: SealedBatch): Promise<SendOutcome>;
  /** Bounded: what does not end by itself within `withinMs` is cut. */
  close(withinMs: number): Promise<void>;
}
