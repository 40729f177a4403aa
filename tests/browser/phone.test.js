/** 360 px wide: fingers can do everything. That nothing is wider than the window is in views.test.js. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, shows } from "./support/explorer.js";

const { open } = await explorer();
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

test("fingers: a suggestion, a neighbour, a point of the map", async () => {
  const page = await open("", phone);
  await page.tap("#word");
  await page.keyboard.type("pian");
  await page.tap("#word-words [data-word=piano]");
  await shows(page, "Nearest to “piano”");
  const next = await page.locator("#answer li a").first().textContent();
  await page.locator("#answer li a").first().tap();
  await shows(page, `Nearest to “${next}”`);
  await page.locator("#map").scrollIntoViewIfNeeded();
  const point = page.locator("#map a.point").last();
  const word = await point.getAttribute("data-word");
  await point.locator("circle").tap();
  await becomes(async () => (await page.locator("#answer-title").textContent()) === `Nearest to “${next}”` && word !== next, false);
});

test("whatever is touched is large enough for a finger: 24 px and more", async () => {
  const page = await open("#word=ocean", phone);
  const small = await page.locator("button:visible, select:visible, input:not([type=checkbox]):visible, #answer li").evaluateAll((all) =>
    all.filter((element) => element.getBoundingClientRect().height < 24).map((element) => element.outerHTML.slice(0, 80)),
  );
  assert.deepEqual(small, []);
});
