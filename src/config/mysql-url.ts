/** The keys under `mysql` that a URL gives: `mysql://user:password@host:3306/database`, parts percent-encoded. */
export type UrlParts = Partial<Record<'host' | 'user' | 'password' | 'database', string>> & { port?: number };

/** Reads the URL; a text says what is wrong with it, without quoting it. */
export function readMysqlUrl(text: string): UrlParts | string {
  const expected = 'mysql://user:password@host:3306/database';
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return `found a text that is no URL; expected ${expected}, special characters percent-encoded`;
  }
  if (url.protocol !== 'mysql:') return `found a URL of another kind; expected ${expected}`;
  if (url.search !== '' || url.hash !== '')
    return 'parameters in the URL are not read; TLS and the rest have keys of their own';
  try {
    const parts: UrlParts = {};
    if (url.hostname !== '') parts.host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    if (url.port !== '') parts.port = Number(url.port);
    if (url.username !== '') parts.user = decodeURIComponent(url.username);
    if (url.password !== '') parts.password = decodeURIComponent(url.password);
    const database = decodeURIComponent(url.pathname.slice(1));
    if (database !== '') parts.database = database;
    return parts;
  } catch {
    return 'found a "%" that encodes nothing; write it as %25';
  }
}
