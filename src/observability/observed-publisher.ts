import type { Clock } from '../model/clock.ts';
import type { FaultCode } from '../model/fault.ts';
import type { Publisher, SealedBatch, SendOutcome } from '../model/publisher.ts';
import type { PublisherMetrics } from './metrics.ts';
import { TopicLabels } from './topic-labels.ts';

/** The same publisher; what it sends is counted, batch by batch. */
export function observedPublisher(
  publisher: Publisher,
  metrics: PublisherMetrics,
  clock: Clock,
  onFault: (code: FaultCode) => void,
): Publisher {
  const topics = new TopicLabels();
  const seen = ({ topic, records, bytes }: SealedBatch, outcome: SendOutcome, seconds: number): void => {
    metrics.requestSeconds.observe({ outcome: outcome.as }, seconds);
    if (outcome.as !== 'acked') {
      const { code } = outcome.fault;
      metrics.sendFaults.inc({ outcome: outcome.as, code });
      onFault(code);
      return;
    }
    metrics.ackedRecords.inc({ topic: topics.of(topic) }, records);
    metrics.ackedBytes.inc(bytes.length);
    metrics.batchRecords.observe(records);
    metrics.batchBytes.observe(bytes.length);
    if (outcome.duplicate) metrics.duplicateBatches.inc();
  };
  return {
    connect: (signal) => publisher.connect(signal),
    topic: (name, refresh) => publisher.topic(name, refresh),
    newProducer: () => {
      metrics.producers.inc();
      return publisher.newProducer();
    },
    async send(batch) {
      const beganMs = clock.nowMs();
      const outcome = await publisher.send(batch);
      seen(batch, outcome, (clock.nowMs() - beganMs) / 1000);
      return outcome;
    },
    close: (withinMs) => publisher.close(withinMs),
  };
}
