import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium } from '../stack/chromium.ts';
import { Relayed } from '../integration/http/http-client.ts';
import { Load } from '../stack/load.ts';
import { freePort } from '../stack/ports.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { startKafka } from '../stack/stack.ts';
import { until } from '../stack/until.ts';
import { PageVisit } from './page-visit.ts';

const TOKEN = 'a-token-of-some-length';
const HOSTILE = '<script>alert(1)</script>';

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
});

test.concurrent(
  'flows, then rows that are parked and that failed: retry by keyboard, discard asks, the relay is gone',
  async () => {
    await using bed = await RelayBed.open();
    const port = await freePort();
    const relay = await bed.start({ http: { port, token: TOKEN }, failures: { maxAttempts: 1 } });
    const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders'), writers: 1, pauseMs: 50 });
    await using visit = await PageVisit.open(browser, port);
    const { page } = visit;
    const state = page.locator('header .word');

    // Without the token there is the state, and nothing else.
    await page.getByRole('heading', { name: 'A token is needed' }).waitFor();
    expect(await page.locator('.part').count()).toBe(0);
    await visit.useToken('not-the-token-at-all');
    await page.getByText('The relay refused this token.').waitFor();
    await visit.useToken(TOKEN);
    await page.locator('.part').first().waitFor();
    await until(async () => (await state.textContent()) === 'FLOWING', { withinMs: 20_000, what: 'FLOWING' });
    expect(await page.title()).toContain('FLOWING');
    expect(await page.getByText(/Nothing is waiting/).count()).toBe(3);
    const sent = page.locator('footer dd', { hasText: 'rows sent' });
    const before = await sent.textContent();
    await until(async () => (await sent.textContent()) !== before, { withinMs: 20_000, what: 'numbers that move' });
    await page.locator('.chart', { hasText: 'rows/s at most' }).waitFor();
    // Where this machine's clock is wrong the relay's counts: for the charts, and for what was when.
    for (const aheadMs of [-40 * 60_000, 40 * 60_000]) {
      await using strayed = await PageVisit.open(browser, port, aheadMs);
      await strayed.useToken(TOKEN);
      await until(async () => (await strayed.inkOfRate()) > 20, { withinMs: 10_000, what: 'a line in the chart' });
      const [, toldAt] = /As of .*?(\d\d:\d\d):/.exec((await strayed.page.locator('footer').textContent()) ?? '') ?? [];
      const nowAt = [0, 60_000].map((agoMs) => new Date(Date.now() - agoMs).toISOString().slice(11, 16));
      expect(nowAt).toContain(toldAt);
    }
    const tooWide = await visit.shots('flowing');

    // A pause and its end by the keyboard, while rows come: letting it run is what is nearer.
    const asking = page.getByRole('dialog', { name: 'Pause the relay?' });
    await visit.tabTo('Pause …');
    await page.keyboard.press('Enter');
    await asking.waitFor();
    await page.keyboard.press('Enter');
    await visit.noDialog();
    expect(await state.textContent()).toBe('FLOWING');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Pause …');
    await page.keyboard.press('Enter');
    await visit.tabTo('Pause it');
    await page.keyboard.press('Enter');
    await page.getByText('The relay pauses.').waitFor();
    await until(async () => (await state.textContent()) === 'PAUSED', { withinMs: 15_000, what: 'PAUSED' });
    await page.getByText(/^Asked for by http 127\.0\.0\.1, \d.* ago\./).waitFor();
    await until(() => bed.count('outbox', "status = 'pending'").then((count) => count > 40), {
      withinMs: 20_000,
      what: 'rows that wait',
    });
    tooWide.push(...(await visit.shots('paused')));
    expect(await visit.barriers()).toEqual([]);
    await visit.tabTo('Resume');
    await page.keyboard.press('Enter');
    await page.getByText('The relay goes on.').waitFor();
    await page.getByText('Nobody has asked for a pause.').waitFor();
    await load.stop();
    await bed.retired();
    await until(async () => (await state.textContent()) === 'FLOWING', { withinMs: 15_000, what: 'FLOWING again' });

    // A topic that is not there, and one that cannot be.
    const missing = bed.servers.topic('missing');
    await bed.sql("INSERT INTO outbox (topic, aggregate_id, event_type, payload) VALUES (?, 'a', 'placed', '{}')", [
      missing,
    ]);
    await bed.sql("INSERT INTO outbox (topic, aggregate_id, event_type, payload) VALUES (?, ?, 'placed', '{}')", [
      HOSTILE,
      `${HOSTILE}\u202e`,
    ]);
    const parked = page.locator('section', { has: page.getByRole('heading', { name: /^Parked/ }) }).last();
    await parked.getByText(missing).waitFor({ timeout: 15_000 });
    await until(() => bed.count('outbox', "status = 'failed'").then((count) => count === 1), {
      withinMs: 15_000,
      what: 'a row that failed',
    });
    const failed = page.locator('section', { has: page.getByRole('heading', { name: /^Failed rows/ }) }).last();
    // What somebody else wrote is text, and nothing in it turns around what follows.
    await failed.getByText(`${HOSTILE}\\u{202e}`).waitFor({ timeout: 15_000 });
    expect(await failed.locator('td').first().textContent()).toBe(`${HOSTILE}${HOSTILE}\\u{202e}`);
    tooWide.push(...(await visit.shots('failed')));
    expect(await visit.barriers()).toEqual([]);
    const [{ id }] = (await bed.sql("SELECT id FROM outbox WHERE status = 'failed'")) as { id: string }[];
    expect(await failed.locator('code').first().textContent()).toBe(`cdc-relay failed retry ${id}`);

    // The keyboard alone leads through a retry.
    await visit.tabTo(`Retry row ${id}`);
    await page.keyboard.press('Enter');
    await page.getByText(`Row ${id} is pending again.`).waitFor();
    await until(() => bed.count('outbox', "status = 'failed'").then((count) => count === 1), {
      withinMs: 15_000,
      what: 'a row that failed again',
    });
    await page.getByRole('button', { name: `Discard row ${id}` }).waitFor({ timeout: 20_000 });

    // To discard is asked for, and keeping is what is nearer.
    const dialog = page.getByRole('dialog', { name: `Discard row ${id}?` });
    await page.getByRole('button', { name: `Discard row ${id}` }).click();
    await dialog.getByText('This cannot be undone.').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep it');
    expect(await visit.barriers()).toEqual([]);
    await page.keyboard.press('Escape');
    await visit.noDialog();
    expect(await bed.count('outbox', `id = ${id}`)).toBe(1);
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe(`Discard row ${id}`);
    // It is no button while the relay, or an answer of it, is waited for.
    const isAsked = async (): Promise<boolean> => {
      if (!(await dialog.isVisible())) await page.keyboard.press('Enter');
      return dialog.isVisible();
    };
    await until(isAsked, { withinMs: 15_000, everyMs: 500, what: 'the question' });
    await dialog.getByRole('button', { name: 'Discard it' }).click();
    await page.getByText(`Row ${id} is deleted.`).waitFor();
    expect(await bed.count('outbox', `id = ${id}`)).toBe(0);
    const acts = await bed.sql('SELECT action, who FROM cdc_relay_actions ORDER BY id');
    expect(acts).toEqual([
      { action: 'retry', who: 'http 127.0.0.1' },
      { action: 'discard', who: 'http 127.0.0.1' },
    ]);

    await relay.kill();
    await page.getByRole('alert').getByText('No answer from the relay since').waitFor({ timeout: 15_000 });
    expect(await state.textContent()).toBe('NO ANSWER');
    tooWide.push(...(await visit.shots('gone', ['light'])));
    expect({ tooWide, elsewhere: visit.elsewhere, complaints: visit.complaints }).toEqual({
      ...{ tooWide: [], elsewhere: [], complaints: [] },
    });
  },
);

test.concurrent(
  'Kafka frozen: STUCK, marked in the picture with its cause; a job is cancelled; who stands by says who leads',
  async () => {
    await using kafka = await startKafka();
    await using bed = await RelayBed.open({
      kafka,
      config: { kafka: { requestTimeoutMs: 3_000, connectTimeoutMs: 1_000 } },
    });
    const [port, standbyPort] = [await freePort(), await freePort()];
    await bed.start({ http: { port, token: TOKEN } });
    const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders'), writers: 1, pauseMs: 50 });
    try {
      // The job below has something to do as soon as one row is published.
      await until(async () => (await bed.count('outbox', "status = 'published'")) > 20, {
        withinMs: 20_000,
        what: 'some load',
      });
      await kafka.nodes[0].freeze();
      await using visit = await PageVisit.open(browser, port);
      await bed.launch({ http: { port: standbyPort } });
      const standbyRelay = new Relayed(standbyPort);
      await until(async () => (await standbyRelay.ready())?.state === 'STANDBY', {
        withinMs: 20_000,
        what: 'a standby',
      });
      await using standby = await PageVisit.open(browser, standbyPort);
      const { page } = visit;
      await visit.useToken(TOKEN);
      await page.locator('.part').first().waitFor();
      // Who stands by says who leads. It has no token: nobody may act from there, and the command line is named instead.
      await standby.page.getByText(/leads\. This relay takes over/).waitFor();
      await standby.page.getByText('No token is set on the relay').waitFor();
      expect(await standby.page.getByRole('button', { name: 'Pause …' }).isDisabled()).toBe(true);
      expect(await standby.page.getByText('cdc-relay pause').count()).toBe(1);
      await standby.shots('standby', ['dark']);

      const filter = { outbox: null, ids: null, aggregate: null, topic: null, sinceMs: null, untilMs: null };
      await bed.sql(
        "INSERT INTO cdc_relay_jobs (relay, kind, spec, created_by) VALUES (?, 'republish', ?, 'me@here')",
        [bed.servers.database, JSON.stringify({ kind: 'republish', filter })],
      );
      await page.getByRole('heading', { name: /^Job 1: republish/ }).waitFor({ timeout: 15_000 });
      await page.getByRole('button', { name: 'Cancel job 1' }).click();
      await page.getByRole('button', { name: 'Cancel the job' }).click();
      await page.getByText('Job 1 is cancelled').waitFor();
      expect(await bed.count('cdc_relay_jobs', "state = 'cancelled'")).toBe(1);

      await page.locator('.part.stuck').waitFor({ timeout: 30_000 });
      expect(await page.locator('header .word').textContent()).toBe('STUCK');
      expect(await page.locator('.part.stuck').getAttribute('data-part')).toMatch(/^(kafka|lanes)$/);
      expect(await page.locator('.part.stuck').textContent()).toMatch(/stuck.*(KAFKA_\w+|no acknowledgement), \d+ s/s);
      await page.getByText(/Since \d\d:\d\d:\d\d UTC/).waitFor();
      const tooWide = await visit.shots('stuck');
      expect(await visit.barriers()).toEqual([]);
      expect({ tooWide, elsewhere: visit.elsewhere, complaints: visit.complaints }).toEqual({
        ...{ tooWide: [], elsewhere: [], complaints: [] },
      });
    } finally {
      await kafka.nodes[0].thaw();
      await load.stop();
    }
  },
);
