import type { Clock } from '../model/clock.ts';
import { type FaultCode, RelayError } from '../model/fault.ts';
import type { Store } from '../model/store.ts';
import type { StoreMetrics } from './metrics.ts';

/** To lead is to wait, for as long as somebody else does. */
const UNTIMED: ReadonlySet<string> = new Set<keyof Store>(['lead', 'close']);

/** The same store; each operation is timed, and its faults are counted by code. */
export function observedStore(
  store: Store,
  metrics: StoreMetrics,
  clock: Clock,
  onFault: (code: FaultCode) => void,
): Store {
  const observed = async (operation: string, work: () => Promise<unknown>): Promise<unknown> => {
    const beganMs = clock.nowMs();
    try {
      return await work();
    } catch (error) {
      const code = error instanceof RelayError ? error.fault.code : 'INTERNAL';
      metrics.storeFaults.inc({ operation, code });
      onFault(code);
      throw error;
    } finally {
      if (!UNTIMED.has(operation)) metrics.storeSeconds.observe({ operation }, (clock.nowMs() - beganMs) / 1000);
    }
  };
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return (...args: unknown[]) => observed(name, () => Reflect.apply(member, target, args) as Promise<unknown>);
    },
  });
}
