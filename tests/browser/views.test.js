/**
 * Every view once at each width: axe-core in light and dark, nothing wider than the window, and pictures for people to
 * look at, in the folder SCREENSHOTS_DIR. One page shows them all, one after another.
 */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { findings, OF_COLOURS, OF_WIDTHS } from "./support/axe.js";
import { becomes, explorer, goTo } from "./support/explorer.js";
import { VIEWS } from "./support/views.js";

const folder = process.env.SCREENSHOTS_DIR ?? "../../target/screenshots";
mkdirSync(folder, { recursive: true });
const { open } = await explorer();
const failing = /40[04]/;

/** Runs a check in light and in dark, and returns to light. */
async function inBoth(page, check) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await check(colorScheme);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** A picture of the whole page; an empty one would be small. */
async function take(page, name) {
  const path = join(folder, `${name}.png`);
  const picture = await page.screenshot({ path, fullPage: true, animations: "disabled", scale: "css" });
  assert.ok(picture.length > 10_000, `${name}: ${picture.length} bytes`);
}

/** The width of the page, and the elements that stick out of a window of this width. */
const wide = (page, width) =>
  page.evaluate((width) => ({
    document: document.documentElement.scrollWidth,
    elements: [...document.querySelectorAll("body *")]
      .filter((element) => !element.closest("svg.map, .hidden, .skip") && element.getBoundingClientRect().right > width + 0.5)
      .map((element) => `${element.tagName} ${element.id} ${element.className}`),
  }), width);

/** The suggestions below the field of the start page, with one of them active. */
async function suggest(page) {
  await goTo(page, "");
  await page.locator("#word").pressSequentially("oce");
  await page.locator("#word-words [role=option]").first().waitFor();
  await page.keyboard.press("ArrowDown");
}

test("1,280 px: axe-core finds nothing on any view, in light and dark", async () => {
  const page = await open("", { viewport: { width: 1280, height: 900 }, failing });
  const check = (name, hasPicture) =>
    inBoth(page, async (colours) => {
      assert.deepEqual(await findings(page, colours === "dark" ? OF_COLOURS : null), [], `${name} ${colours}`);
      if (hasPicture) await take(page, `${name}-1280-${colours}`);
    });
  for (const { name, hash, ready } of VIEWS) {
    await goTo(page, hash);
    await page.locator(ready).first().waitFor();
    await check(name, name !== "hundred");
  }
  await suggest(page);
  await check("start", true);
});

test("390 px and less: nothing is wider than the window, and all that scrolls can be reached", async () => {
  const height = 740;
  const options = { viewport: { width: 390, height }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
  const page = await open("", { ...options, failing });
  for (const { name, hash, ready } of VIEWS) {
    await goTo(page, hash);
    await page.locator(ready).first().waitFor();
    assert.deepEqual(await findings(page, name === "analogy" ? null : OF_WIDTHS), [], name);
    if (name !== "hundred") await inBoth(page, (colours) => take(page, `${name}-390-${colours}`));
    for (const width of [360, 390]) {
      await page.setViewportSize({ width, height });
      await becomes(() => wide(page, width), { document: width, elements: [] });
    }
  }
  await suggest(page);
  await inBoth(page, (colours) => take(page, `start-390-${colours}`));
});
