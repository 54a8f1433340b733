import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type VerifyReport, verifySchema } from '../../../src/commands/verify-report.ts';
import { type Finished, runProgram } from '../../e2e/built-cli.ts';
import type { Config, RelayBed } from '../../stack/relay-bed.ts';

/** From its sources: what is tested here is not the build. */
const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url));

/** The command line with a configuration, to its end; it has no terminal. */
export async function runWith(config: object, args: readonly string[]): Promise<Finished> {
  const cwd = mkdtempSync(join(tmpdir(), 'cdc-relay-test-'));
  try {
    const file = join(cwd, 'relay.yaml');
    writeFileSync(file, JSON.stringify(config));
    return await runProgram(process.execPath, [CLI, ...args, '--config', file], { cwd, withinMs: 60_000 });
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

export interface Verdict extends Finished {
  readonly report: VerifyReport;
}

/** `cdc-relay verify --json`. */
export async function verifyJson(bed: RelayBed, args: readonly string[] = [], config: Config = {}): Promise<Verdict> {
  const finished = await runWith(bed.config(config), ['verify', '--json', ...args]);
  if (finished.stdout === '') throw new Error(`verify ended with ${finished.code}: ${finished.stderr}`);
  return { ...finished, report: verifySchema.parse(JSON.parse(finished.stdout)) };
}

/** The counts that are not 0. */
export function countsOf(report: VerifyReport): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(report).filter((entry): entry is [string, number] => typeof entry[1] === 'number' && entry[1] > 0),
  );
}
