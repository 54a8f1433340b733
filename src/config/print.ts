import { stringify } from 'yaml';

/** A configuration as YAML. */
export function configText(config: object): string {
  return stringify(config).trimEnd();
}
