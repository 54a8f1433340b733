import { assign, type Assignments } from './assignment.ts';
import { keyAt, patternOf } from './keys.ts';
import { parsePath } from './paths.ts';
import { SECRET_KEYS } from './schema.ts';
import { alikePath } from './suggest.ts';

/** Values from flags: `--set mysql.host=db1`, `--set outboxes[0].retire=keep`. */
export function fromFlags(sets: readonly string[]): Assignments {
  const read = sets.map(readSet);
  return { assignments: read.flatMap((each) => each.assignments), faults: read.flatMap((each) => each.faults) };
}

function readSet(text: string): Assignments {
  const where = '--set';
  const equals = text.indexOf('=');
  const path = parsePath(equals < 0 ? text : text.slice(0, equals));
  if (equals < 0 || path === null) {
    return { assignments: [], faults: [{ path: [], where, message: 'expected key=value such as mysql.host=db1' }] };
  }
  const key = keyAt(path);
  if (key === undefined) {
    const meant = alikePath(path);
    return {
      assignments: [],
      faults: [{ path, where, message: `unknown key${meant === undefined ? '' : `; did you mean ${meant}?`}` }],
    };
  }
  if (SECRET_KEYS.has(patternOf(path))) {
    const other = key.variable === null ? '' : `; set ${key.variable} or ${key.variable}_FILE`;
    return {
      assignments: [],
      faults: [{ path, where, message: `a secret; flags can be read by everybody on the machine${other}` }],
    };
  }
  return assign(key, path, text.slice(equals + 1), where);
}
