import { join } from 'node:path';
import { cached } from './cache.ts';
import { available, command } from './command.ts';
import { shown } from './progress.ts';

/**
 * Prometheus's own tool for rules: the one on the PATH, else out of Debian's package, extracted and not installed.
 * Where there is neither, why.
 */
export async function promtool(): Promise<{ readonly program: string } | { readonly missing: string }> {
  if (await available('promtool')) return { program: 'promtool' };
  for (const tool of ['apt-get', 'dpkg-deb']) {
    if (!(await available(tool))) return { missing: `neither promtool nor ${tool} is on the PATH` };
  }
  try {
    return { program: join(await extracted(), 'promtool') };
  } catch (error) {
    return { missing: `apt-get has no package prometheus: ${error instanceof Error ? error.message : 'no reason'}` };
  }
}

function extracted(): Promise<string> {
  return cached(`promtool-${process.arch}`, async (directory) => {
    const download = () => command('apt-get', ['download', '-qq', 'prometheus'], { cwd: directory });
    await shown('promtool (Debian package prometheus)', null, async () => {
      try {
        await download();
      } catch {
        await command('apt-get', ['update', '-qq']); // a fresh machine has no lists, an old one has lists of old packages
        await download();
      }
      // Of the package's tree the one program, and nothing of the download.
      const extract = 'dpkg-deb --fsys-tarfile *.deb | tar -x --strip-components=3 ./usr/bin/promtool && rm -- *.deb';
      await command('/bin/sh', ['-c', extract], { cwd: directory });
    });
  });
}
