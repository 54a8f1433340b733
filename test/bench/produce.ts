import { parseArgs } from 'node:util';
import { createPublisher } from '../../src/kafka/publisher.ts';
import { kafkaClient } from '../stack/kafka-client.ts';
import { kafkaSettings, makeBatch, RecordedLog } from '../stack/publishing.ts';
import { startKafka } from '../stack/stack.ts';

/**
 * `node test/bench/produce.ts [--batches 1500] [--kilobytes 1024]`: the publisher alone: batches that are ready, to 12
 * partitions of one broker, one outstanding for each. One line of JSON.
 */
const { values } = parseArgs({
  options: { batches: { type: 'string', default: '1500' }, kilobytes: { type: 'string', default: '1024' } },
});
const PARTITIONS = 12;
const WARM_UP = 10 * PARTITIONS;
const VALUE_BYTES = 500;
/** Not idempotent: the same bytes may be appended again and again. */
const producer = { id: -1n, epoch: -1 };
const topic = 'produce';

await using cluster = await startKafka();
const admin = kafkaClient(cluster.brokers).admin();
await admin.connect();
await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }] });
await admin.disconnect();

const publisher = createPublisher(kafkaSettings(cluster.brokers, { requestTimeoutMs: 30_000 }), new RecordedLog());
await publisher.connect(new AbortController().signal);
const records = Math.floor((Number(values.kilobytes) * 1024) / (2 * VALUE_BYTES + 30));
const batches = await Promise.all(
  Array.from({ length: PARTITIONS }, (_, partition) =>
    makeBatch({
      topic,
      partition,
      producer,
      sequence: -1,
      values: Array<string>(Math.max(1, records)).fill('x'.repeat(VALUE_BYTES)),
    }),
  ),
);

await send(WARM_UP);
const total = Number(values.batches);
const cpu = process.cpuUsage();
const startedMs = performance.now();
const turns = performance.nodeTiming.uvMetricsInfo.loopCount;
await send(total);
const elapsedMs = performance.now() - startedMs;
const { user, system } = process.cpuUsage(cpu);
const perS = (count: number): number => Math.round((count * 1000) / elapsedMs);
process.stdout.write(
  `${JSON.stringify({
    bench: 'produce',
    megabytesPerS: perS((total * batches[0].bytes.length) / 1e6),
    recordsPerS: perS(total * batches[0].records),
    batchesPerS: perS(total),
    cores: Number(((user + system) / 1000 / elapsedMs).toFixed(2)),
    cpuUsPerBatch: Math.round((user + system) / total),
    loopTurnsPerBatch: Number(((performance.nodeTiming.uvMetricsInfo.loopCount - turns) / total).toFixed(1)),
    batchBytes: batches[0].bytes.length,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
  })}\n`,
);
await publisher.close(1000);

async function send(count: number): Promise<void> {
  let left = count;
  await Promise.all(
    batches.map(async (batch) => {
      while (left-- > 0) {
        const outcome = await publisher.send(batch);
        if (outcome.as !== 'acked') throw new Error(outcome.fault.detail);
      }
    }),
  );
}
