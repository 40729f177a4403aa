/** The map: points are links, their distances exact; buttons, wheel, keys, drags and double clicks. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, listed, shows } from "./support/explorer.js";

const { service, open } = await explorer();

/** Where a word's point is, in pixels of the page. */
const where = async (page, word) => {
  const { x, y, width, height } = await page.locator(`#map [data-word="${word}"] circle`).boundingBox();
  return [x + width / 2, y + height / 2];
};

const apart = ([x, y], [u, v]) => Math.hypot(x - u, y - v);

test("each point tells its exact distance", async () => {
  const page = await open("#word=ocean");
  await shows(page, "Nearest to “ocean”");
  const { neighbors } = await service.get("nearest", { word: "ocean", k: 20 });
  for (const { word, score } of neighbors) {
    const label = await page.locator(`#map [data-word="${word}"]`).getAttribute("aria-label");
    assert.equal(label, `${word}: cosine distance ${(1 - score).toFixed(4)} to ocean`);
  }
  assert.equal(await page.locator("#map .point").count(), neighbors.length + 1);
  assert.equal(await page.locator("#map .edge").count(), neighbors.length);
});

test("points are links; a hover marks the word in the list and in the grid", async () => {
  const page = await open("#word=ocean");
  const [, word] = await listed(page);
  await page.mouse.move(...(await where(page, word)));
  await becomes(() => page.locator("#answer li.marked a").allTextContents(), [word]);
  await becomes(() => page.locator(`#heat .marked[data-word="${word}"]`).count(), 2);
  await page.mouse.click(...(await where(page, word)));
  await shows(page, `Nearest to “${word}”`);
});

test("the buttons zoom and reset", async () => {
  const page = await open("#word=ocean");
  const [one, other] = await listed(page);
  const before = [await where(page, one), await where(page, other)];
  await page.click("#zoom-in");
  const after = [await where(page, one), await where(page, other)];
  assert.ok(Math.abs(apart(...after) / apart(...before) - 1.5) < 0.02, `${before} ${after}`);
  await page.click("#zoom-out");
  await page.click("#zoom-in");
  await page.click("#zoom-reset");
  assert.ok(apart(await where(page, one), before[0]) < 0.2);
});

test("the wheel zooms with Ctrl, where the mouse is, and scrolls the page without", async () => {
  const page = await open("#word=ocean", { viewport: { width: 1440, height: 500 } });
  await page.locator("#map").scrollIntoViewIfNeeded();
  const [one, other] = await listed(page);
  const before = [await where(page, one), await where(page, other)];
  await page.mouse.move(...before[0]);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await becomes(async () => apart(await where(page, one), await where(page, other)) > 1.3 * apart(...before), true);
  assert.ok(apart(await where(page, one), before[0]) < 4);
  const zoomed = apart(await where(page, one), await where(page, other));
  const scrolled = await page.evaluate(() => scrollY);
  await page.mouse.wheel(0, 100);
  await becomes(async () => (await page.evaluate(() => scrollY)) > scrolled, true);
  assert.ok(Math.abs(apart(await where(page, one), await where(page, other)) - zoomed) < 0.5);
});

test("keys zoom and move, and leave the page where it is", async () => {
  const page = await open("#word=ocean");
  const [one] = await listed(page);
  await page.locator(`#map [data-word="${one}"]`).focus();
  const before = await where(page, one);
  for (const key of ["+", "+"]) await page.keyboard.press(key);
  const zoomed = await where(page, one);
  assert.ok(apart(before, zoomed) > 1);
  await page.keyboard.press("ArrowLeft");
  assert.deepEqual((await where(page, one)).map(Math.round), [zoomed[0] + 40, zoomed[1]].map(Math.round));
  await page.keyboard.press("0");
  assert.ok(apart(await where(page, one), before) < 0.2);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.word), one);
});

test("a drag moves the map and is no click; a double click zooms", async () => {
  const page = await open("#word=ocean");
  const [one, other] = await listed(page);
  await page.click("#zoom-in");
  await page.click("#zoom-in");
  const box = await page.locator("#map svg").boundingBox();
  const start = await where(page, one);
  const [middle, towards] = [box.x + box.width / 2, start[0] > box.x + box.width / 2 ? -30 : 30];
  assert.ok(middle > 0);
  await page.mouse.move(...start);
  await page.mouse.down();
  await page.mouse.move(start[0] + towards / 2, start[1], { steps: 3 });
  await page.mouse.move(start[0] + towards, start[1], { steps: 3 });
  await page.mouse.up();
  await page.waitForTimeout(200);
  assert.equal(await page.locator("#answer-title").textContent(), "Nearest to “ocean”");
  const moved = await where(page, one);
  assert.ok(Math.abs(moved[0] - start[0] - towards) < 5, `${start} ${moved}`);
  await page.click("#zoom-reset");
  const before = apart(await where(page, one), await where(page, other));
  await page.mouse.dblclick(box.x + 6, box.y + 6);
  await becomes(async () => Math.abs(apart(await where(page, one), await where(page, other)) / before - 2) < 0.05, true);
});

test("the map lets go of a mouse that was let go outside, and Enter follows a word after a drag", async () => {
  const page = await open("#word=ocean");
  const [one] = await listed(page);
  for (const times of [1, 2]) await page.click("#zoom-in", { clickCount: times });
  const box = await page.locator("#map svg").boundingBox();
  await page.mouse.move(box.x + 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x - 60, box.y - 60);
  await page.mouse.up();
  const before = await where(page, one);
  await page.mouse.move(box.x + 80, box.y + 80, { steps: 4 });
  assert.ok(apart(await where(page, one), before) < 1);
  await page.mouse.down();
  await page.mouse.move(box.x + 100, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await page.locator(`#map [data-word="${one}"]`).focus();
  await page.keyboard.press("Enter");
  await becomes(() => page.locator("#answer-title").textContent(), `Nearest to “${one}”`);
});

test("no label lies on another", async () => {
  const page = await open("#word=ocean&k=40");
  const boxes = await page.locator("#map .point:not(.crowded) text").evaluateAll((texts) =>
    texts.filter((text) => getComputedStyle(text).visibility === "visible").map((text) => {
      const { left, right, top, bottom } = text.getBoundingClientRect();
      return { left, right, top: top + 3, bottom: bottom - 3, text: text.textContent };
    }),
  );
  assert.ok(boxes.length > 10, `${boxes.length}`);
  boxes.forEach((one, place) => {
    for (const other of boxes.slice(place + 1)) {
      const overlap = one.left < other.right - 1 && other.left < one.right - 1 && one.top < other.bottom && other.top < one.bottom;
      assert.ok(!overlap, `${JSON.stringify(one)} ${JSON.stringify(other)}`);
    }
  });
});
