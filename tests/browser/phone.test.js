/** 360 px wide: everything is there, nothing is wider than the window, and fingers can do it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, shows } from "./support/explorer.js";
import { VIEWS } from "./support/views.js";

const { open } = await explorer();
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

for (const { name, hash, ready, failing } of VIEWS) {
  test(`nothing is wider than the window: ${name}`, async () => {
    const page = await open(hash, { ...phone, failing });
    await page.locator(ready).first().waitFor();
    const wide = await page.evaluate(() => ({
      document: document.documentElement.scrollWidth,
      elements: [...document.querySelectorAll("body *")]
        .filter((element) => !element.closest("svg.map, .hidden, .skip") && element.getBoundingClientRect().right > 360.5)
        .map((element) => `${element.tagName} ${element.id} ${element.className}`),
    }));
    assert.deepEqual(wide, { document: 360, elements: [] });
  });
}

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
