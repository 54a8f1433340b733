/**
 * - error: the relay cannot do its work, or part of it
 * - warning: it works, but something that is promised or expected does not hold
 * - unknown: a check that could not be made
 * - good: looked at, and nothing is wrong
 */
export type Severity = 'error' | 'warning' | 'unknown' | 'good';

/** What a finding is about, in the order of the report. */
export const AREAS = ['mysql', 'binlog', 'rights', 'tables', 'rows', 'kafka', 'topics', 'http'] as const;
export type Area = (typeof AREAS)[number];

export interface Finding {
  readonly severity: Severity;
  readonly area: Area;
  /** Stable name of the check, in kebab-case: people filter by it. */
  readonly check: string;
  /** What was found, with the names and values of this server. */
  readonly fact: string;
  /** What follows from it; null where nothing does. */
  readonly effect: string | null;
  /** Statements or steps, ready to be pasted, a line each; null where there is nothing to do. */
  readonly fix: string | null;
  /** The tail cannot work like this: rows go by the sweep, or not at all. */
  readonly stopsTail: boolean;
}

type Text = Pick<Finding, 'fact'> & Partial<Pick<Finding, 'effect' | 'fix' | 'stopsTail'>>;

/** Makes the findings of one check. */
export interface Findings {
  error(text: Text): Finding;
  warning(text: Text): Finding;
  /** `fact`: what could not be checked, and for want of what. */
  unknown(text: Text): Finding;
  good(fact: string): Finding;
}

export function findingsOf(area: Area, check: string): Findings {
  const make = (severity: Severity, text: Text): Finding => {
    return { severity, area, check, effect: null, fix: null, stopsTail: false, ...text };
  };
  return {
    error: (text) => make('error', text),
    warning: (text) => make('warning', text),
    unknown: (text) => make('unknown', text),
    good: (fact) => make('good', { fact }),
  };
}

const SEVERITIES: readonly Severity[] = ['error', 'warning', 'unknown', 'good'];

/** The worst first, then by area; what is alike stays in the order in which it was found. */
export function sorted(findings: readonly Finding[]): Finding[] {
  return findings.toSorted(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || AREAS.indexOf(a.area) - AREAS.indexOf(b.area),
  );
}
