import { Counter, Gauge, type Registry } from 'prom-client';
import type { Moment, StateSources } from './reading.ts';
import { HEALTH } from './readings-health.ts';
import { IN_HAND } from './readings-in-hand.ts';
import { LOG } from './readings-log.ts';
import { ROWS } from './readings-rows.ts';
import { WAITING } from './readings-waiting.ts';

const READINGS = [...HEALTH, ...WAITING, ...ROWS, ...LOG, ...IN_HAND];

/** Registers what is read when somebody asks; the returned function reads it. */
export function registerState(registry: Registry, sources: StateSources): () => void {
  const registers = [registry];
  const metrics = READINGS.map((reading) => {
    const { name, help, labels = [] } = reading;
    const options = { name, help, registers, labelNames: [...labels] };
    return { reading, metric: reading.kind === 'gauge' ? new Gauge(options) : new Counter(options) };
  });
  return () => {
    const { stats } = sources.observer;
    const now: Moment = { sight: sources.observer.look(), stats, term: stats.term, sources };
    for (const { reading, metric } of metrics) {
      const read = reading.read(now);
      // What cannot be said now is not there: no gauge shows what was true once.
      if (metric instanceof Gauge && (reading.labels === undefined || reading.labels.length === 0)) metric.remove();
      else metric.reset();
      const values = typeof read === 'object' && read !== null ? read : [[{}, read] as const];
      for (const [labels, value] of values) if (typeof value === 'number') metric.inc(labels, value);
    }
  };
}
