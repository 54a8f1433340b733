import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';

const SHOTS = fileURLToPath(new URL('../../test-output/page/', import.meta.url));
const SIZES = { desktop: { width: 1_280, height: 900 }, phone: { width: 360, height: 780 } };
const SCHEMES = ['light', 'dark'] as const;
type Scheme = (typeof SCHEMES)[number];

export interface Violation {
  readonly scheme: string;
  readonly id: string;
  readonly nodes: readonly string[];
}

/** Somebody who looks at the page of a relay; notes whom it asks, and what it complains of. */
export class PageVisit implements AsyncDisposable {
  readonly page: Page;
  /** Requests to anybody but the relay. */
  readonly elsewhere: string[] = [];
  /** Of scripts and of the page's policy; answers that say no are not among them. */
  readonly complaints: string[] = [];

  private constructor(page: Page, origin: string) {
    this.page = page;
    page.on('request', (request) => {
      if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:'))
        this.elsewhere.push(request.url());
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      this.complaints.push(`a script ran: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
        this.complaints.push(message.text());
      }
    });
  }

  /** `aheadMs`: how far the clock of this machine goes wrong. */
  static async open(browser: Browser, port: number, aheadMs = 0): Promise<PageVisit> {
    const origin = `http://127.0.0.1:${port}`;
    const context = await browser.newContext({ viewport: SIZES.desktop, reducedMotion: 'reduce' });
    if (aheadMs !== 0) await context.clock.install({ time: Date.now() + aheadMs });
    const page = await context.newPage();
    const visit = new PageVisit(page, origin);
    await page.goto(`${origin}/`);
    return visit;
  }

  async useToken(token: string): Promise<void> {
    await this.page.getByRole('textbox', { name: 'Token' }).fill(token);
    await this.page.keyboard.press('Enter');
  }

  /** How many pixels of the rate's chart are of its line. */
  inkOfRate(): Promise<number> {
    return this.page.evaluate<number>(`(() => {
      const canvas = document.querySelector('.chart canvas');
      if (canvas === null) return 0;
      const line = getComputedStyle(canvas).getPropertyValue('--rate').trim();
      const [r, g, b] = line.match(/[0-9a-f]{2}/gi).map((digits) => parseInt(digits, 16));
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let ink = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] === 255) ink++;
      }
      return ink;
    })()`);
  }

  /** In both sizes. Returns where something had to be scrolled sideways. */
  async shots(name: string, schemes: readonly Scheme[] = SCHEMES): Promise<string[]> {
    mkdirSync(SHOTS, { recursive: true });
    const tooWide: string[] = [];
    await this.page.evaluate('scrollTo(0, 0)');
    for (const [size, viewport] of Object.entries(SIZES)) {
      await this.page.setViewportSize(viewport);
      for (const colorScheme of schemes) {
        await this.page.emulateMedia({ colorScheme });
        const overPx = await this.page.evaluate<number>(
          'new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))).then(() => document.documentElement.scrollWidth - innerWidth)',
        );
        if (overPx > 0) tooWide.push(`${name} ${size}: ${overPx} px`);
        await this.page.screenshot({ path: `${SHOTS}${name}-${size}-${colorScheme}.png`, fullPage: true });
      }
    }
    await this.page.setViewportSize(SIZES.desktop);
    return tooWide;
  }

  /** What axe-core takes for a serious or critical barrier, in both schemes. */
  async barriers(): Promise<Violation[]> {
    // By the debugger's way in: the page's policy lets no script in.
    await this.page.evaluate(axe.source);
    const found: Violation[] = [];
    for (const scheme of SCHEMES) {
      await this.page.emulateMedia({ colorScheme: scheme });
      const { violations } = await this.page.evaluate<axe.AxeResults>(
        'axe.run(document, { resultTypes: ["violations"] })',
      );
      for (const { id, impact, nodes } of violations) {
        if (impact !== 'serious' && impact !== 'critical') continue;
        found.push({ scheme, id, nodes: nodes.map(({ html }) => html.slice(0, 200)) });
      }
    }
    return found;
  }

  /** The last one is gone from the page: one that has only closed is about to be put away. */
  async noDialog(): Promise<void> {
    await this.page.locator('dialog').waitFor({ state: 'detached' });
  }

  /** Presses Tab until the element with this name has the focus. */
  async tabTo(name: string): Promise<void> {
    for (let presses = 0; presses < 80; presses++) {
      await this.page.keyboard.press('Tab');
      const focused = await this.page.evaluate<string>(
        '(document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "").trim()',
      );
      if (focused === name) return;
    }
    throw new Error(`the keyboard does not lead to ${name}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
  }
}
