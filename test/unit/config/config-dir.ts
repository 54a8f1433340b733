import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type LoadedConfig } from '../../../src/config/load.ts';

/** A directory with a configuration in it, removed at the end of the block. */
export class ConfigDir implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'cdc-relay-config-'));
  readonly file = join(this.directory, 'relay.yaml');

  write(name: string, text: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, text);
    return path;
  }

  load(yaml: string, environment: Record<string, string> = {}, sets: string[] = []): LoadedConfig {
    writeFileSync(this.file, yaml);
    return this.loadFile(this.file, environment, sets);
  }

  loadFile(file: string | null, environment: Record<string, string> = {}, sets: string[] = []): LoadedConfig {
    return loadConfig({ file, environment, sets });
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true });
  }
}

export const VALID = `
name: orders
mysql:
  host: db1
  user: relay
  password: hunter2hunter2
  database: app
kafka:
  brokers: ["broker1:9092"]
outboxes:
  - table: app.outbox
`;

export function faultLines(loaded: LoadedConfig): string[] {
  if (loaded.ok) throw new Error('the configuration has no fault');
  return loaded.report.split('\n').slice(1);
}

export function settings(loaded: LoadedConfig) {
  if (!loaded.ok) throw new Error(loaded.report);
  return loaded.settings;
}
