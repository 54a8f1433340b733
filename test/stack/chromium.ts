import { readdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { cached } from './cache.ts';
import { command } from './command.ts';
import { shown } from './progress.ts';

/**
 * A real Chromium without a window: the one at CDC_RELAY_TEST_CHROMIUM, else the one that comes inside the npm package
 * @sparticuz/chromium, unpacked once into the cache with the libraries and fonts that it may not find on the machine.
 */
export async function startChromium(): Promise<Browser> {
  const given = process.env['CDC_RELAY_TEST_CHROMIUM'] ?? '';
  if (given !== '') return chromium.launch({ executablePath: given });
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error('no Chromium for this machine: CDC_RELAY_TEST_CHROMIUM=/path/to/chromium names one');
  }
  const directory = await unpacked();
  return chromium.launch({
    executablePath: join(directory, 'chromium'),
    args: ['--headless=shell'],
    env: {
      ...process.env,
      // NSS, which a machine without a browser lacks.
      LD_LIBRARY_PATH: join(directory, 'al2023', 'lib'),
      FONTCONFIG_FILE: join(directory, 'cdc-relay-fonts.conf'),
    },
  });
}

async function unpacked(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const root = join(dirname(entry), '..');
  const { version } = createRequire(import.meta.url)(join(root, 'package.json')) as { version: string };
  return cached(`chromium-${version}`, (directory) =>
    shown(`Chromium ${version} (npm)`, directory, async () => {
      const files = (await readdir(join(root, 'bin'))).filter((name) => !name.startsWith('swiftshader'));
      const script = `import { inflate } from ${JSON.stringify(entry)};
        await Promise.all(process.argv.slice(1).map(inflate));`;
      const args = ['--input-type=module', '-e', script, ...files.map((name) => join(root, 'bin', name))];
      // It unpacks into the directory of temporary files, wherever that is.
      await command(process.execPath, args, { env: { ...process.env, TMPDIR: directory } });
      await writeFile(join(directory, 'cdc-relay-fonts.conf'), FONTS);
    }),
  );
}

/** The machine's own, and beside them the package's, which are in the directory of this file. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>/usr/local/share/fonts</dir>
  <dir prefix="relative">fonts/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`;
