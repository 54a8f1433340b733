import { type Finding, findingsOf } from './finding.ts';

export interface ServerVersion {
  readonly flavour: 'mysql' | 'mariadb';
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** As the server says it. */
  readonly text: string;
}

/**
 * `8.4.3`, `9.7.4-2`, `10.11.14-MariaDB-log`, and the form in which MariaDB and its proxies disguise themselves for old
 * clients: `5.5.5-10.11.14-MariaDB` (J1).
 */
export function parseVersion(text: string): ServerVersion {
  const flavour = /mariadb/i.test(text) ? 'mariadb' : 'mysql';
  const plain = flavour === 'mariadb' ? text.replace(/^5\.5\.5-/, '') : text;
  const [major, minor, patch] = (/^(\d+)\.(\d+)(?:\.(\d+))?/.exec(plain) ?? []).slice(1).map((part) => Number(part));
  return { flavour, major: major || 0, minor: minor || 0, patch: patch || 0, text };
}

export function isAtLeast(version: ServerVersion, major: number, minor: number, patch = 0): boolean {
  return (
    version.major > major ||
    (version.major === major && (version.minor > minor || (version.minor === minor && version.patch >= patch)))
  );
}

const CHECK = findingsOf('mysql', 'server-version');

export function versionFindings(version: ServerVersion): Finding[] {
  const { flavour, text } = version;
  const isSupported = flavour === 'mariadb' ? isAtLeast(version, 10, 6) : isAtLeast(version, 8, 0, 20);
  const name = flavour === 'mariadb' ? 'MariaDB' : 'MySQL';
  if (isSupported) return [CHECK.good(`${name} ${text}`)];
  return [
    CHECK.error({
      fact: `the server is ${name} ${text}`,
      effect: 'statements that the relay needs are not there (SKIP LOCKED, row metadata)',
      fix: 'MySQL 8.0.20 or later, or MariaDB 10.6 or later',
    }),
  ];
}
