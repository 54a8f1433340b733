/** What `SHOW GRANTS` says, as far as it can be told from there; roles that are active are in it. */
export class Grants {
  readonly #granted: readonly Entry[];
  readonly #revoked: readonly Entry[];
  /** Roles that were granted, as `'name'@'%'`; active or not. */
  readonly roles: readonly string[];

  private constructor(granted: readonly Entry[], revoked: readonly Entry[], roles: readonly string[]) {
    this.#granted = granted;
    this.#revoked = revoked;
    this.roles = roles;
  }

  static parse(lines: readonly string[]): Grants {
    const granted: Entry[] = [];
    const revoked: Entry[] = [];
    const roles: string[] = [];
    for (const line of lines) {
      const match = /^(GRANT|REVOKE) (.+?) ON (?:TABLE )?(\S.*?) (?:TO|FROM) /.exec(line);
      if (match === null) roles.push(...rolesIn(line));
      else if (!/^(?:PROCEDURE|FUNCTION|PACKAGE|PROXY) /.test(match[3])) {
        const entries = privilegesIn(match[2]).map((privilege) => ({ ...privilege, ...levelOf(match[3]) }));
        (match[1] === 'GRANT' ? granted : revoked).push(...entries);
      }
    }
    return new Grants(granted, revoked, roles);
  }

  /** A privilege of the whole server. */
  hasGlobal(privilege: string): boolean {
    return this.#granted.some((entry) => entry.schema === null && !entry.someColumns && allows(entry, privilege));
  }

  /** True: the privilege is there for the whole table. False: it is not, or that cannot be told from here. */
  hasForTable(privilege: string, schema: string, table: string): boolean {
    const covers = (entry: Entry): boolean =>
      allows(entry, privilege) &&
      (entry.schema === null || (isLike(schema, entry.schema) && (entry.table === null || entry.table === table)));
    return this.#granted.some((entry) => covers(entry) && !entry.someColumns) && !this.#revoked.some(covers);
  }
}

interface Entry {
  readonly privilege: string;
  readonly someColumns: boolean;
  /** A pattern as LIKE has it; null: all. */
  readonly schema: string | null;
  /** Null: all. */
  readonly table: string | null;
}

function allows({ privilege }: Entry, wanted: string): boolean {
  return privilege === wanted || privilege === 'ALL PRIVILEGES' || privilege === 'ALL';
}

/** `SELECT, UPDATE (`a`, `b`)`: a comma within parentheses is not between privileges. */
function privilegesIn(list: string): { privilege: string; someColumns: boolean }[] {
  return list.split(/,(?![^(]*\))/).map((part) => ({
    privilege: part.replace(/\(.*/s, '').trim().toUpperCase(),
    someColumns: part.includes('('),
  }));
}

const NAME = /`((?:[^`]|``)*)`|([^.`\s]+)/g;

function levelOf(on: string): { schema: string | null; table: string | null } {
  const [schema, table] = [...on.matchAll(NAME)].map(([, quoted, plain]) =>
    ((quoted as string | undefined) ?? plain).replaceAll('``', '`'),
  );
  return { schema: schema === '*' ? null : schema, table: table === '*' ? null : table };
}

/** The grant of a role has no ON: GRANT `a`@`%`,`b`@`%` TO `relay`@`%`. */
function rolesIn(line: string): string[] {
  const list = /^GRANT (.+) TO /.exec(line)?.[1] ?? '';
  const roles = [...list.matchAll(/`((?:[^`]|``)*)`(?:@`((?:[^`]|``)*)`)?/g)];
  return roles.map(([, name, host]) => `'${name}'@'${(host as string | undefined) ?? '%'}'`);
}

/** `_` and `%` are wildcards in the schema of a grant, unless a backslash is in front of them. */
function isLike(schema: string, pattern: string): boolean {
  const source = pattern.replaceAll(
    /\\([_%\\])|([_%])|([.*+?^${}()|[\]\\])/g,
    (_, escaped?: string, wild?: string, special?: string) => {
      if (escaped !== undefined) return escaped === '\\' ? '\\\\' : escaped;
      if (wild !== undefined) return wild === '_' ? '.' : '.*';
      return `\\${special!}`;
    },
  );
  return new RegExp(`^${source}$`, 's').test(schema);
}
