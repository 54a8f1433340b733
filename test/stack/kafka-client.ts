import { zstdCompress, zstdDecompress } from 'node:zlib';
import { promisify } from 'node:util';
import kafkajs, { type Kafka, type KafkaConfig } from 'kafkajs';
// For its guard against the library's idle timer, which also prints a warning on current Node.
import '../../src/kafka/kafkajs-internals.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

interface Encoder {
  readonly buffer: Buffer;
}

// The library itself knows gzip only.
kafkajs.CompressionCodecs[kafkajs.CompressionTypes.ZSTD] = () => ({
  compress: (encoder: Encoder) => compress(encoder.buffer),
  decompress: (buffer: Buffer) => decompress(buffer),
});

/** A kafkajs client for tests: silent, and able to read every compression that the relay writes. */
export function kafkaClient(brokers: readonly string[], options: Omit<KafkaConfig, 'brokers'> = {}): Kafka {
  // The library keeps the first client's credentials in the object that it is given.
  const sasl = options.sasl === undefined ? {} : { sasl: { ...options.sasl } };
  return new kafkajs.Kafka({ logLevel: kafkajs.logLevel.NOTHING, ...options, ...sasl, brokers: [...brokers] });
}
