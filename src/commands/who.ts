import { hostname, userInfo } from 'node:os';

/** User and host of the operating system. */
export function whoAsks(): string {
  return `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user id without a name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
