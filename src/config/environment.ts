import { distance } from 'fastest-levenshtein';
import { assign, type Assignments } from './assignment.ts';
import { KEYS, PREFIX } from './keys.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Names the file; not a key of it. */
export const CONFIG_VARIABLE = `${PREFIX}CONFIG`;

/**
 * Values from the environment: `CDC_RELAY_` and the key's path in capitals (`mysql.passwordFile` is
 * CDC_RELAY_MYSQL_PASSWORD_FILE). An empty variable is not set. LOG_LEVEL counts where CDC_RELAY_LOG_LEVEL is not set.
 * A variable that is a slip away from a known one is a fault; others with the prefix are somebody else's.
 */
export function fromEnvironment(environment: Environment): Assignments {
  const known = KEYS.filter((key) => key.variable !== null);
  const read = known.flatMap((key) => {
    const name = key.variable!;
    const text = environment[name];
    if (text !== undefined && text !== '' && !isServiceLink(text)) return [assign(key, key.path, text, name)];
    const level = environment['LOG_LEVEL'];
    const standsIn = key.pattern === 'log.level' && level !== undefined && level !== '';
    return standsIn ? [assign(key, key.path, levelNamed(level), 'LOG_LEVEL')] : [];
  });
  const names = known.map((key) => key.variable!);
  return {
    assignments: read.flatMap((each) => each.assignments),
    faults: [...read.flatMap((each) => each.faults), ...slips(environment, [...names, CONFIG_VARIABLE])],
  };
}

/** Kubernetes sets CDC_RELAY_MYSQL_PORT=tcp://10.0.0.1:3306 and the like when a service is called cdc-relay-mysql. */
function isServiceLink(text: string): boolean {
  return /^(tcp|udp|sctp):\/\//.test(text);
}

/** LOG_LEVEL is shared with other programs, whose names for levels differ. */
function levelNamed(level: string): string {
  const name = level.toLowerCase();
  return { trace: 'debug', warning: 'warn', fatal: 'error', critical: 'error' }[name] ?? name;
}

function slips(environment: Environment, names: readonly string[]): Assignments['faults'] {
  return Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && !names.includes(name))
    .flatMap((name) => {
      const meant = names.find((other) => distance(name, other) <= 2);
      if (meant === undefined) return [];
      return [{ path: [], where: name, message: `unknown variable; did you mean ${meant}?` }];
    });
}
