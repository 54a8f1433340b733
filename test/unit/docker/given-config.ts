import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadConfig } from '../../../src/config/load.ts';
import type { Settings } from '../../../src/model/settings.ts';

export const ROOT = join(import.meta.dirname, '../../..');
export const DOCKER = join(ROOT, 'docker');

/** A file of docker/. */
export function text(file: string): string {
  return readFileSync(join(DOCKER, file), 'utf8');
}

/** The settings of a configuration whose secrets are files: each is there, as it is where the relay runs. */
export function settingsOf(config: string): Settings {
  const scratch = mkdtempSync(join(tmpdir(), 'cdc-relay-packaging-'));
  const parsed = parse(config) as Record<string, Record<string, unknown>>;
  for (const part of Object.values(parsed)) {
    for (const key of Object.keys(part)) {
      if (!/^(password|token)File$/.test(key)) continue;
      part[key] = join(scratch, key);
      writeFileSync(join(scratch, key), 'a secret of enough letters');
    }
  }
  const file = join(scratch, 'cdc-relay.yaml');
  writeFileSync(file, JSON.stringify(parsed));
  try {
    const loaded = loadConfig({ file, environment: {}, sets: [] });
    if (!loaded.ok) throw new Error(loaded.report);
    return loaded.settings;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
