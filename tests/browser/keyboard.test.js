/** The keyboard alone, from the first key to walking on; the focus is always to be seen. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { explorer, listed, shows } from "./support/explorer.js";

const { open } = await explorer();

/** What has the focus, in words. */
const focus = (page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    return element.id || element.getAttribute("data-word") || element.textContent.trim();
  });

/** Presses Tab until it is there; every stop on the way must be seen. */
async function tabTo(page, wanted, key = "Tab") {
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press(key);
    const seen = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === document.body) return true;
      // Points of the map show it by their circles.
      const marked = element.querySelector?.(":scope > circle") ?? element;
      const { outlineStyle, outlineWidth, strokeWidth } = getComputedStyle(marked);
      return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2) || (marked !== element && parseFloat(strokeWidth) >= 3);
    });
    assert.ok(seen, `no focus to be seen on ${await focus(page)}`);
    if (await wanted()) return;
  }
  assert.fail("it can't be reached");
}

test("from the first key to walking on", async () => {
  const page = await open();
  await page.keyboard.press("Tab");
  assert.equal(await focus(page), "Skip to the search");
  await page.keyboard.press("Enter");
  assert.equal(await focus(page), "word");
  await page.keyboard.type("pian");
  await page.locator("#word-words [data-word=piano]").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await shows(page, "Nearest to “piano”");
  // The focus stays where it was, so that one can type on.
  assert.equal(await focus(page), "word");
  const [, second] = await listed(page);
  await tabTo(page, async () => (await focus(page)) === second);
  await page.keyboard.press("Enter");
  await shows(page, `Nearest to “${second}”`);
  // The focus is not lost with the list that it was in.
  assert.equal(await focus(page), "answer-title");
  await page.keyboard.press("Tab");
  assert.equal(await focus(page), (await listed(page))[0]);
  await page.goBack();
  await shows(page, "Nearest to “piano”");
});

test("points of the map, the grid, the buttons and the command can be reached, forwards and back", async () => {
  const page = await open("#word=ocean&k=10");
  const inside = (selector) => () => page.evaluate((selector) => document.activeElement.matches(selector), selector);
  for (const selector of ["#theme", "#k", "#zoom-in", "#map a.point", "svg.heat", "#copy-curl", "#curl"]) await tabTo(page, inside(selector));
  await tabTo(page, inside("#map a.point"), "Shift+Tab");
  const word = await page.evaluate(() => document.activeElement.dataset.word);
  await page.keyboard.press("Enter");
  await shows(page, `Nearest to “${word}”`);
});

test("the arrow keys go through the kinds of question, Tab into the field", async () => {
  const page = await open();
  await page.locator("#tab-word").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await focus(page), "tab-analogy");
  assert.equal(await page.locator("#tab-analogy").getAttribute("aria-selected"), "true");
  await page.keyboard.press("Tab");
  assert.equal(await focus(page), "analogy");
  await page.keyboard.type("ocean");
  await page.keyboard.press("Enter");
  await shows(page, "ocean ≈");
  await page.locator("#tab-analogy").focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await focus(page), "tab-rows");
});

test("a slash goes to the search, but is a slash while one types", async () => {
  const page = await open("#word=ocean");
  await page.locator("#answer li a").first().focus();
  await page.keyboard.press("/");
  assert.equal(await focus(page), "word");
  await page.keyboard.type("and/or");
  assert.equal(await page.inputValue("#word"), "and/or");
});

test("a slash brings the search back into sight, from wherever the page is scrolled to", async () => {
  const page = await open("#word=ocean&k=100", { viewport: { width: 390, height: 700 } });
  const inSight = (selector) =>
    page.locator(selector).evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    });
  await page.locator("#answer li a").last().focus();
  assert.equal(await inSight("#word"), false);
  await page.keyboard.press("/");
  assert.equal(await focus(page), "word");
  assert.equal(await inSight("#word"), true);
  assert.equal(await inSight("label[for=word]"), true);
  // A checkbox takes no slash.
  await page.locator("#fold").focus();
  await page.keyboard.press("/");
  assert.equal(await focus(page), "word");
});

test("a word that turns out to be unknown leaves the focus at the notice", async () => {
  const page = await open("#word=ocean", { failing: /404/ });
  await page.route("**/nearest?*", (route) => route.continue({ url: route.request().url().replace(/word=\w+/, "word=oceann") }));
  await page.locator("#answer li a").first().focus();
  await page.keyboard.press("Enter");
  await page.locator("#notice .chip").first().waitFor();
  assert.equal(await focus(page), "notice");
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement.matches("#notice a")));
});

test("an unknown word's suggestions can be walked with the keyboard", async () => {
  const page = await open("#word=oceann", { failing: /404/ });
  const wanted = await page.locator("#notice .chip").first().textContent();
  await page.locator("#word").focus();
  await tabTo(page, async () => (await focus(page)) === wanted && (await page.evaluate(() => document.activeElement.matches("#notice a"))));
  await page.keyboard.press("Enter");
  await shows(page, `Nearest to “${wanted}”`);
  assert.equal(await focus(page), "answer-title");
});
