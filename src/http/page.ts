import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/** Beside the built code: `npm run build` puts it there. */
const FILE = new URL('../page/index.html', import.meta.url);

export interface Page {
  readonly html: string;
  /** Nothing but what is in the page itself runs, and it speaks to nobody but the relay. */
  readonly policy: string;
}

/** Read when it is first asked for. Null: it has not been built. */
export class PageFile {
  readonly #file: URL;
  #page: Promise<Page | null> | null = null;

  constructor(file = FILE) {
    this.#file = file;
  }

  read(): Promise<Page | null> {
    return (this.#page ??= this.#load());
  }

  async #load(): Promise<Page | null> {
    try {
      const html = await readFile(this.#file, 'utf8');
      return { html, policy: policyOf(html) };
    } catch {
      this.#page = null; // it may be built meanwhile
      return null;
    }
  }
}

export function policyOf(html: string): string {
  return [
    "default-src 'none'",
    `script-src ${hashes(html, 'script')}`,
    `style-src ${hashes(html, 'style')}`,
    'img-src data:',
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function hashes(html: string, element: 'script' | 'style'): string {
  const contents = [...html.matchAll(new RegExp(`<${element}\\b[^>]*>([\\s\\S]*?)</${element}>`, 'g'))];
  return contents.map(([, text]) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`).join(' ');
}
