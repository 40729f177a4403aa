/** The explorer in a real browser. Every page is watched: nothing may fail on it that a test does not expect. */

import assert from "node:assert/strict";
import { after, afterEach } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

import { FLAGS } from "./chromium.js";
import { serve } from "./service.js";

/** Machines that do much else at the same time are slow. */
export const PATIENCE_MS = 20_000;

/** Asks again until the assertion holds, less and less often: each time costs the page and the test some time. */
export async function eventually(assertion, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  for (let pause = 20; ; pause = Math.min(1.5 * pause, 120)) {
    try {
      return await assertion();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(pause);
    }
  }
}

/** Holds what `read` gives against a value, until it is that. */
export const becomes = (read, value) => eventually(async () => assert.deepEqual(await read(), value));

/**
 * For all tests of a file: one browser, and one service with these settings unless it is `null`.
 * @returns {Promise<{service, open, browser}>} `open` opens a page, see below
 */
export async function explorer(settings = []) {
  const [service, browser] = await Promise.all([
    settings === null ? null : serve(settings),
    chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS }),
  ]);
  let pages = [];
  afterEach(async () => {
    const watched = pages;
    pages = [];
    await Promise.all(watched.map(({ context }) => context.close()));
    for (const { faults } of watched) assert.deepEqual(faults, []);
  });
  after(async () => {
    await browser.close();
    await service?.stop();
  });

  /**
   * Opens the page in a window and with a storage of its own, and waits until nothing is on its way.
   * @param {string} address what follows the service's own, such as `#word=ocean`
   * @param {object} options `at`: where the page is, the service's own address unless given; `waits`: whether to wait
   *   for its answer; `failing`: a pattern
   *   of statuses and network errors that the test expects; `calls`: an origin that the page may call besides its own; `before(page)`: runs before the page is loaded; all
   *   others are Playwright's for a new context. Nothing moves unless a test asks for it: each frame of a transition is
   *   painted without a GPU.
   */
  async function open(address = "", { at = `${service.url}/`, waits = true, failing = null, calls = null, before, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    await context.addInitScript(() => {
      window.addressShown = location.hash;
      addEventListener("hashchange", () => (window.addressShown = location.hash));
    });
    const page = await context.newPage();
    const faults = [];
    pages.push({ context, faults });
    page.on("console", (message) => {
      if (!["error", "warning"].includes(message.type())) return;
      const isExpected = /^Failed to load resource/.test(message.text()) && failing?.test(message.text());
      if (!isExpected) faults.push(`console: ${message.text()} (${message.location().url})`);
    });
    page.on("pageerror", (error) => faults.push(`error: ${error.stack}`));
    page.on("dialog", (dialog) => faults.push(`dialog: ${dialog.message()}`));
    context.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (![new URL(at).origin, calls].includes(origin) && protocol !== "data:") faults.push(`request to ${request.url()}`);
    });
    await before?.(page);
    await page.goto(at + address);
    if (waits) await settled(page);
    return page;
  }
  return { service, browser, open };
}

/** Waits until nothing is asked any more. An address changes a moment before the page is told of it. */
export const settled = (page) => {
  const isSettled = () =>
    location.hash === (window.addressShown ?? location.hash) && !document.body.classList.contains("busy");
  return page.waitForFunction(isSettled, null, { polling: 50 });
};

/** Goes to another address of the same page, and waits until nothing is on its way: much cheaper than a new page. */
export async function goTo(page, hash) {
  const changed = (hash) =>
    new Promise((resolve) => {
      addEventListener("hashchange", () => resolve(), { once: true });
      location.hash = hash;
    });
  await page.evaluate(changed, hash);
  await settled(page);
}

/** Waits until this is what is shown. */
export async function shows(page, title) {
  await becomes(() => page.locator("#answer-title").textContent(), title);
  await settled(page);
}

/** The words of the list, in its order. */
export const listed = (page) => page.locator("#answer li a").allTextContents();

/**
 * By keys alone: goes `left` from the first tab to the one of this kind, types a text of two lines there, and asks.
 * @returns {{focus, tabTo}} what has the focus; `tabTo(what, most)`: presses Tab until that has it
 */
export async function typeTwoLines(page, { kind, left, lines: [first, second], title, hasExamples = true }) {
  const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
  await page.locator("#tab-word").focus();
  for (let presses = 0; presses < left; presses += 1) await page.keyboard.press("ArrowLeft");
  assert.equal(await focus(), `tab-${kind}`);
  if (hasExamples) await page.locator("#text-examples .chip").first().waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await focus(), kind);
  await page.keyboard.type(first);
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type(second);
  await page.keyboard.press("Enter");
  await shows(page, title);
  assert.equal(await focus(), kind);
  const tabTo = async (what, most) => {
    for (let presses = 0; (await focus()) !== what; presses += 1) {
      assert.ok(presses < most, await focus());
      await page.keyboard.press("Tab");
    }
  };
  return { focus, tabTo };
}
