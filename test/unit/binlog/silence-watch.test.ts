import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SilenceWatch } from '../../../src/binlog/silence-watch.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const STEADY = { periodMs: 1_000, beginsWithinMs: 0 };

describe('the watch over silence', () => {
  it('speaks after three periods in which nothing was heard', async () => {
    const onSilence = vi.fn();
    const watch = new SilenceWatch({ ...STEADY, onSilence });
    await vi.advanceTimersByTimeAsync(2_900);
    watch.heard();
    await vi.advanceTimersByTimeAsync(2_900);
    expect(onSilence).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(700);
    expect(onSilence).toHaveBeenCalled();
    watch.close();
    const { calls } = onSilence.mock;
    expect(calls[0][0]).toBeGreaterThan(3_000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(onSilence).toHaveBeenCalledTimes(calls.length);
  });

  it('gives the first sign its own time, and no other', async () => {
    const onSilence = vi.fn();
    const watch = new SilenceWatch({ periodMs: 1_000, beginsWithinMs: 10_000, onSilence });
    await vi.advanceTimersByTimeAsync(9_900);
    expect(onSilence).not.toHaveBeenCalled();
    watch.heard();
    await vi.advanceTimersByTimeAsync(2_900);
    expect(onSilence).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(onSilence).toHaveBeenCalled();
    watch.close();
    const neverBegun = vi.fn();
    const other = new SilenceWatch({ periodMs: 1_000, beginsWithinMs: 10_000, onSilence: neverBegun });
    await vi.advanceTimersByTimeAsync(11_000);
    expect(neverBegun).toHaveBeenCalled();
    other.close();
  });

  it('does not count what passes while nobody listens', async () => {
    const onSilence = vi.fn();
    const watch = new SilenceWatch({ ...STEADY, onSilence });
    watch.listen(false);
    await vi.advanceTimersByTimeAsync(60_000);
    watch.listen(true);
    await vi.advanceTimersByTimeAsync(2_900);
    expect(onSilence).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(onSilence).toHaveBeenCalled();
    watch.close();
  });
});

describe('after a long turn of our own', () => {
  it('bytes that wait in the socket count as heard', async () => {
    vi.useRealTimers();
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // Paused before it connects, it reads nothing until it is resumed.
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
    const [peer] = (await once(server, 'connection')) as [Socket];
    await new Promise<void>((resolve) => peer.write('heartbeat', () => resolve()));
    const onSilence = vi.fn();
    const watch = new SilenceWatch({ periodMs: 20, beginsWithinMs: 0, onSilence });
    const heard = once(socket, 'data');
    socket.on('data', () => watch.heard()).resume();
    const until = performance.now() + 150;
    while (performance.now() < until);
    await heard;
    await new Promise((resolve) => setImmediate(resolve));
    expect(onSilence).not.toHaveBeenCalled();
    watch.close();
    socket.destroy();
    server.close();
  });
});
