/**
 * Every view once at each width: axe-core in light and dark, nothing wider than the window, and pictures for people to
 * look at, in the folder SCREENSHOTS_DIR. One page shows them all, one after another.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { findings, OF_COLOURS, OF_WIDTHS } from "./support/axe.js";
import { becomes, explorer, goTo } from "./support/explorer.js";
import { VIEWS, inBoth, take, wide } from "./support/views.js";

const { open } = await explorer();
const failing = /40[04]/;

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
