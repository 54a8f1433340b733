import type { Clock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Checkpoint } from '../../../src/model/position.ts';
import type { Publisher } from '../../../src/model/publisher.ts';
import type { Source } from '../../../src/model/source.ts';
import type { Leader, Store } from '../../../src/model/store.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import { Term } from '../../../src/relay/term.ts';

export const from: Checkpoint = {
  position: { file: 'binlog.000001', offset: 4 },
  gtidSet: null,
  lastBegin: null,
  lastGtid: null,
  lastCommitMicros: null,
};

/** A term over a made-up source whose streams bring no row: store and publisher are asked for next to nothing. */
export function termOf(source: Source, clock: Clock): Term {
  const config = configSchema.parse({
    name: 'term',
    mysql: { host: 'db1', user: 'relay', password: '', database: 'app' },
    kafka: { brokers: ['broker1:9092'] },
    outboxes: [{ table: 'outbox', retire: 'keep' }],
  });
  const silent: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
    child: () => silent,
  };
  const deps = {
    settings: settingsOf(complete(config)),
    source,
    publisher: {} as Publisher,
    store: { isPaused: () => Promise.resolve(null) } as Partial<Store> as Store,
    clock,
    log: silent,
    duties: [],
  };
  const leader = { epoch: 1, lost: new AbortController().signal, maySend: () => true } as unknown as Leader;
  const facts = { version: '8.4.0', flavour: 'mysql', serverUuid: 'uuid', gtidMode: false } as const;
  return new Term(deps, leader, facts, { from, high: from.position });
}
