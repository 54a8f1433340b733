import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const ROOT = new URL('../../', import.meta.url);
/** What is in the page; each has to be named with its license. */
const BUNDLED = ['preact', 'uplot', 'zod'];

/** One file that asks nobody for anything: script and style go into it, and the licenses of what they are made of. */
const oneFile: Plugin = {
  name: 'one-file',
  enforce: 'post',
  generateBundle(_, bundle) {
    const page = bundle['index.html'];
    if (page.type !== 'asset') throw new Error('there is no index.html');
    let html = String(page.source);
    for (const [name, file] of Object.entries(bundle)) {
      if (name === 'index.html') continue;
      const text = file.type === 'chunk' ? file.code : String(file.source);
      const element = file.type === 'chunk' ? 'script' : 'style';
      const tag = new RegExp(`<(script|link)\\b[^>]*(src|href)="[^"]*${name}"[^>]*>(</script>)?`);
      if (!tag.test(html)) throw new Error(`index.html does not name ${name}`);
      // A script that is written into the page runs where it stands, unless it is a module.
      const open = element === 'script' ? '<script type="module">' : '<style>';
      const inside = element === 'script' ? text.replaceAll('</script', '<\\/script') : text;
      html = html.replace(tag, () => `${open}${inside}</${element}>`);
      Reflect.deleteProperty(bundle, name);
    }
    page.source = html.replace('<head>', () => `<head>\n<!--\n${licenses()}\n-->`);
  },
};

function licenses(): string {
  return BUNDLED.map((name) => {
    const license = readFileSync(new URL(`node_modules/${name}/LICENSE`, ROOT), 'utf8').trim();
    return `${name}\n\n${license.replaceAll('--', '- -')}`;
  }).join('\n\n');
}

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  plugins: [oneFile],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  logLevel: 'warn',
  build: {
    outDir: fileURLToPath(new URL('dist/page', ROOT)),
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    assetsInlineLimit: Number.POSITIVE_INFINITY,
  },
});
