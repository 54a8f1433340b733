import { existsSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { available, command } from './command.ts';
import { shown } from './progress.ts';
import { removeDirectory, temporaryDirectory } from './ward.ts';

/** The image of docker/Dockerfile, built and run by the docker on the PATH. */

const ROOT = join(import.meta.dirname, '../..');
const DOCKERFILE = join(ROOT, 'docker/Dockerfile');
/** Where the builder is a part of the engine, it must be asked for. */
const env = { ...process.env, DOCKER_BUILDKIT: '1' };

export function docker(...args: readonly string[]): Promise<string> {
  return command('docker', args, { env });
}

/** Why no image can be built and run here; null where it can. */
export async function noImagesBecause(): Promise<string | null> {
  if (process.platform !== 'linux') return 'containers reach the servers of the tests on Linux alone';
  if (!(await available('docker'))) return 'no docker on the PATH';
  const directory = await temporaryDirectory();
  try {
    await writeFile(join(directory, 'Dockerfile'), 'FROM scratch\nLABEL cdc-relay.probe=1\n');
    const image = await docker('build', '--quiet', directory);
    await docker('image', 'rm', image.trim());
  } catch {
    return 'no Docker engine with BuildKit answers';
  } finally {
    await removeDirectory(directory);
  }
  const base = baseImage();
  try {
    await docker('image', 'inspect', base);
    return null;
  } catch {
    return shown(`Docker image ${base}`, null, () => docker('pull', '--quiet', base)).then(
      () => null,
      () => `the Docker engine cannot get ${base}`,
    );
  }
}

export function baseImage(): string {
  return /^FROM (\S+)/m.exec(readFileSync(DOCKERFILE, 'utf8'))![1];
}

/** Builds it as docs/deploy.md says; npm asks where it asks on this machine. */
export async function buildImage(tag: string): Promise<void> {
  const directory = await temporaryDirectory();
  const npmrc = join(directory, 'npmrc');
  try {
    await writeFile(npmrc, await npmSettings());
    const build = () =>
      docker('build', '--network=host', `--secret=id=npmrc,src=${npmrc}`, `--file=${DOCKERFILE}`, `--tag=${tag}`, ROOT);
    await shown(`${tag} (docker build)`, null, build);
  } finally {
    await rm(npmrc, { force: true });
    await removeDirectory(directory);
  }
}

/** Whom npm asks on this machine, in one file. The authorities that it trusts are written out: their file is not in the image. */
async function npmSettings(): Promise<string> {
  const get = async (key: string): Promise<string> =>
    (await command('npm', ['config', 'get', key], { cwd: ROOT })).trim();
  const userConfig = await get('userconfig');
  const own = existsSync(userConfig) ? readFileSync(userConfig, 'utf8').split('\n') : [];
  const files = [await get('cafile'), process.env['NODE_EXTRA_CA_CERTS'] ?? ''];
  return [
    ...own.filter((line) => !/^\s*(cafile|registry)\s*=/.test(line)),
    `registry=${await get('registry')}`,
    ...authoritiesIn(files.find((file) => existsSync(file))),
    '',
  ].join('\n');
}

function authoritiesIn(file: string | undefined): string[] {
  if (file === undefined) return [];
  const certificates = readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g);
  return (certificates ?? []).map((certificate) => `ca[]=${JSON.stringify(certificate)}`);
}
