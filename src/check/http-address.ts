import type { HttpSettings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';

/** Who may ask the relay over HTTP. Pure. */
export function httpFindings({ host, port, token }: HttpSettings): Finding[] {
  if (port === 0) return [];
  const check = findingsOf('http', 'http-host');
  const isLocal = /^(?:127\.|localhost$|::1$)/.test(host);
  if (isLocal || token !== null) {
    return [
      check.good(`HTTP is served on ${host}:${port}, ${token === null ? 'to this machine only' : 'with a token'}`),
    ];
  }
  return [
    check.warning({
      fact: `HTTP is served on ${host}:${port} to everybody who can reach it: http.token is not set`,
      effect: 'names, positions, counts, and aggregate ids of what is parked or failed can be read by anybody there',
      fix: 'http.tokenFile: a file with a long random text; or http.host: 127.0.0.1',
    }),
  ];
}
