import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cached } from './cache.ts';
import { available, command } from './command.ts';
import { shown } from './progress.ts';

/**
 * Servers without Docker: MySQL and MariaDB out of Debian packages, extracted and not installed; Kafka's jars out of
 * Maven. Each comes through its client's own configuration of where to ask.
 */

export const KAFKA_VERSION = '4.3.1';
const LOG4J_VERSION = '2.25.3';

/** A program of an extracted Debian tree: run with the tree's own loader and libraries, whatever the machine has. */
export interface Program {
  readonly program: string;
  readonly args: readonly string[];
}

export async function mysqlTree(): Promise<string> {
  return debianTree('mysql', 'sid', ['mysql-server-core', 'mysql-client']);
}

export async function mariadbTree(): Promise<string> {
  return debianTree('mariadb', 'bookworm', ['mariadb-server-core']);
}

export function inTree(tree: string, path: string): Program {
  const { multiarch, loader } = architecture();
  // Suites before trixie keep /lib beside /usr/lib; later ones have moved everything into the latter.
  const roots = [join(tree, 'usr'), tree].filter((root) => existsSync(join(root, 'lib', multiarch)));
  const program = roots.map((root) => join(root, loader)).find((file) => existsSync(file));
  if (program === undefined) throw new Error(`${tree} has no ${loader}: remove it to have it made again`);
  const libraries = roots.flatMap((root) => ['', '/mysql/private'].map((part) => join(root, 'lib', multiarch) + part));
  return { program, args: ['--library-path', libraries.join(':'), join(tree, path)] };
}

/** The directory of jars that is Kafka's class path. */
export async function kafkaJars(): Promise<string> {
  const name = `kafka-${KAFKA_VERSION}`;
  if (!(await available('java'))) throw noServers('there is no java on the PATH');
  return cached(name, async (directory) => {
    if (!(await available('mvn'))) throw noServers('there is no mvn on the PATH');
    await shown(`Kafka ${KAFKA_VERSION} (Maven)`, null, async () => {
      const pom = join(directory, 'pom.xml');
      await writeFile(pom, KAFKA_POM);
      await command('mvn', ['-B', '-q', '-f', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${directory}`]);
    });
  });
}

async function debianTree(name: string, suite: string, packages: readonly string[]): Promise<string> {
  return cached(`${name}-${suite}-${process.arch}`, async (directory) => {
    architecture();
    const tools = ['apt-get', 'apt-config'];
    for (const tool of tools) if (!(await available(tool))) throw noServers(`there is no ${tool} on this machine`);
    if (process.getuid?.() !== 0) throw noServers('extracting Debian packages needs root');
    if (!(await available('mmdebstrap'))) {
      await shown('mmdebstrap (apt-get install)', null, async () => {
        await command('apt-get', ['update', '-qq']);
        const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
        await command('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'mmdebstrap'], { env });
      });
    }
    const source = `deb [signed-by=${KEYRING}] ${await debianUri()} ${suite} main`;
    const aptOptions = (await machineAptOptions()).flatMap((line) => [`--aptopt=${line}`]);
    const what = `${packages.join(', ')} from Debian ${suite} (mmdebstrap)`;
    await shown(what, directory, () =>
      command('mmdebstrap', [
        '--quiet',
        '--variant=extract',
        ...aptOptions,
        '--aptopt=Acquire::Check-Valid-Until "false"',
        `--include=${packages.join(',')}`,
        suite,
        directory,
        source,
      ]),
    );
  });
}

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Where this machine itself gets Debian from. */
async function debianUri(): Promise<string> {
  const ask = () =>
    command('apt-get', ['indextargets', '--format', '$(ORIGIN)|$(CODENAME)|$(REPO_URI)', 'Created-By: Packages']);
  let targets = await ask();
  if (!targets.includes('Debian|')) {
    await command('apt-get', ['update', '-qq']); // the origin is known from the release files only
    targets = await ask();
  }
  for (const line of targets.split('\n')) {
    const [origin, codename, uri] = line.split('|');
    if (origin === 'Debian' && codename !== '' && uri) return uri;
  }
  throw noServers('the apt sources of this machine name no Debian archive');
}

/** Proxies and the like: mmdebstrap's own apt does not read the machine's configuration. */
async function machineAptOptions(): Promise<string[]> {
  const dump = await command('apt-config', ['dump']);
  return dump.split('\n').filter((line) => /^Acquire::(https?|Retries)\b.* "[^"]+";$/.test(line));
}

function architecture(): { readonly multiarch: string; readonly loader: string } {
  if (process.platform === 'linux') {
    if (process.arch === 'x64') return { multiarch: 'x86_64-linux-gnu', loader: 'lib64/ld-linux-x86-64.so.2' };
    if (process.arch === 'arm64') return { multiarch: 'aarch64-linux-gnu', loader: 'lib/ld-linux-aarch64.so.1' };
  }
  throw noServers(`no local servers for ${process.platform} on ${process.arch}`);
}

function noServers(why: string): Error {
  return new Error(
    `no servers to test against: no address is given, no Docker engine answers, and ${why}.\n` +
      'Install Docker, or give addresses: CDC_RELAY_TEST_MYSQL=mysql://user:password@host:port and ' +
      'CDC_RELAY_TEST_KAFKA=host:port,...',
  );
}

const dependency = (group: string, artifact: string, version: string): string =>
  `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;

const KAFKA_POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>kafka</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>
${dependency('org.apache.kafka', 'kafka_2.13', KAFKA_VERSION)}
${dependency('org.apache.kafka', 'kafka-tools', KAFKA_VERSION)}
${dependency('org.apache.logging.log4j', 'log4j-slf4j-impl', LOG4J_VERSION)}
</dependencies></project>
`;
