// Preloaded into a relay: its wall clock is off by as many milliseconds as the file says. What is monotonic stays so.
import { readFileSync } from 'node:fs';
import { setInterval } from 'node:timers';

const { Date: RealDate } = globalThis;
const file = process.env.CDC_RELAY_TEST_CLOCK;
let offMs = 0;
setInterval(() => {
  offMs = Number(readFileSync(file, 'utf8'));
}, 50).unref();

globalThis.Date = class Date extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + offMs);
    else super(...parts);
  }

  static now() {
    return RealDate.now() + offMs;
  }
};
