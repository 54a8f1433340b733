import { describe, expect, test } from 'vitest';
import { Routes, UNKNOWN_TOPIC_GRACE_MS } from '../../../src/kafka/routes.ts';
import type { TopicMetadata } from '../../../src/kafka/metadata.ts';

const known = (leaders: readonly number[]): TopicMetadata => ({
  topic: 'orders',
  topicErrorCode: 0,
  partitionMetadata: leaders.map((leader, partitionId) => ({
    partitionErrorCode: leader < 0 ? 5 : 0,
    partitionId,
    leader,
  })),
});
const failed = (topicErrorCode: number): TopicMetadata => ({ topic: 'orders', topicErrorCode, partitionMetadata: [] });

const routes = (...entries: TopicMetadata[]): Routes => {
  const made = new Routes();
  for (const entry of entries) made.apply(entry, 0);
  return made;
};

describe('leaders', () => {
  test('are those of the last answer', () => {
    const made = routes(known([1, 2]), known([2, 1, 3]));
    expect([0, 1, 2, 3].map((partition) => made.leader('orders', partition))).toEqual([2, 1, 3, null]);
    expect(made.partitions('orders')).toBe(3);
    expect(made.leader('others', 0)).toBeNull();
  });

  test('one in doubt is asked for, and only that one', () => {
    const made = routes(known([1, 2]));
    made.doubt('orders', 0);
    made.doubt('orders', 9);
    made.doubt('others', 0);
    expect([made.leader('orders', 0), made.leader('orders', 1)]).toEqual([null, 2]);
    made.apply(known([3, 2]), 0);
    expect(made.leader('orders', 0)).toBe(3);
  });

  test('a partition without one does not disturb the others', () => {
    const made = routes(known([1, -1, 1]));
    expect([0, 1, 2].map((partition) => made.leader('orders', partition))).toEqual([1, null, 1]);
    expect(made.obstacle(known([1, -1, 1]), 1, 0)).toMatchObject({
      code: 'KAFKA_LEADER_NOT_AVAILABLE',
      disposition: 'retry',
    });
    expect(made.obstacle(known([1, -1, 1]), 0, 0)).toBeNull();
  });
});

describe('a topic that is not there', () => {
  test('is parked at once when it was never there', () => {
    expect(routes().obstacle(failed(3), 0, 0)).toMatchObject({
      code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION',
      disposition: 'park',
    });
  });

  test('is looked for a while when it was, and parked then', () => {
    const made = routes(known([1]), failed(3));
    expect(made.leader('orders', 0)).toBeNull();
    expect(made.partitions('orders')).toBeNull();
    made.apply(failed(3), UNKNOWN_TOPIC_GRACE_MS - 1);
    expect(made.obstacle(failed(3), 0, UNKNOWN_TOPIC_GRACE_MS - 1)).toMatchObject({ disposition: 'retry' });
    expect(made.obstacle(failed(3), 0, UNKNOWN_TOPIC_GRACE_MS)).toMatchObject({ disposition: 'park' });
    made.apply(known([2]), UNKNOWN_TOPIC_GRACE_MS + 1);
    expect(made.leader('orders', 0)).toBe(2);
  });

  test('is parked when it has come back with too few partitions', () => {
    expect(routes(known([1, 1])).obstacle(known([1]), 1, 0)).toMatchObject({
      code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION',
      disposition: 'park',
    });
  });

  test('an answer with another error leaves what is known', () => {
    const made = routes(known([1]), failed(5));
    expect(made.leader('orders', 0)).toBe(1);
    expect(made.obstacle(failed(29), 0, 0)).toMatchObject({
      code: 'KAFKA_TOPIC_AUTHORIZATION_FAILED',
      disposition: 'park',
    });
  });
});
