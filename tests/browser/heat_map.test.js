/** The grid of similarities: its values are the service's, by mouse and by arrow keys. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, goTo, listed, shows } from "./support/explorer.js";

const { service, open } = await explorer();

const pair = (page) => page.locator("#pair").textContent();

async function told(one, other) {
  const { results } = await service.post("similarity", { pairs: [[one, other]] });
  return `${one} · ${other}: ${results[0].score.toFixed(4).replace("-", "−")}`;
}

test("every pair under the mouse is told with its similarity", async () => {
  const page = await open("#word=ocean");
  await shows(page, "Nearest to “ocean”");
  const names = ["ocean", ...(await listed(page))];
  const size = names.length;
  assert.equal(await page.locator("#heat .cell").count(), size * size);
  for (const [row, column] of [[0, 1], [3, 7], [size - 1, 0], [size - 1, size - 2], [10, 20]]) {
    await page.locator("#heat .cell").nth(row * size + column).hover();
    await becomes(() => pair(page), await told(names[row], names[column]));
  }
});

test("arrow keys go from pair to pair and stop at the edges", async () => {
  const page = await open("#word=ocean");
  const names = ["ocean", ...(await listed(page))];
  await page.locator("#heat svg").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"]) await page.keyboard.press(key);
  assert.equal(await pair(page), await told(names[1], names[2]));
  for (let i = 0; i < 30; i += 1) await page.keyboard.press("ArrowRight");
  assert.equal(await pair(page), await told(names[1], names.at(-1)));
});

test("darker is more alike", async () => {
  const page = await open("#word=ocean&k=10");
  const names = ["ocean", ...(await listed(page))];
  const pairs = names.flatMap((one) => names.filter((other) => other !== one).map((other) => [one, other]));
  const { results } = await service.post("similarity", { pairs });
  const shares = await page.locator("#heat .cell:not(.self)").evaluateAll((cells) =>
    cells.map((cell) => Number(cell.style.getPropertyValue("--share"))),
  );
  const byScore = results.map(({ score }, place) => [score, shares[place]]).sort(([one], [other]) => one - other);
  for (let i = 1; i < byScore.length; i += 1) assert.ok(byScore[i][1] >= byScore[i - 1][1] - 1e-9);
  assert.equal(Math.min(...shares), 0);
  assert.equal(Math.max(...shares), 1);
});

test("390 px: every row has its name, in letters that can be read and do not touch", async () => {
  const page = await open("", { viewport: { width: 390, height: 800 } });
  for (const [hash, size, isColumnNamed] of [["#word=ocean", 21, true], ["#word=ocean&k=100", 31, false]]) {
    await goTo(page, hash);
    const { rows, columns, overflow } = await page.locator("#heat svg").evaluate((chart) => {
      const names = [...chart.querySelectorAll(".name")].map((name) => {
        const [x, y] = name.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
        return { x, y, isRow: !name.getAttribute("transform").includes("rotate"), size: parseFloat(getComputedStyle(name).fontSize) };
      });
      const overflow = chart.getBoundingClientRect().right - innerWidth;
      return { rows: names.filter(({ isRow }) => isRow), columns: names.filter(({ isRow }) => !isRow), overflow };
    });
    assert.deepEqual([rows.length, columns.length], [size, isColumnNamed ? size : 0]);
    for (const { size } of [...rows, ...columns]) assert.ok(size >= 11, `${size}`);
    const apart = (names, axis) => names.slice(1).map((name, place) => name[axis] - names[place][axis]);
    assert.ok(Math.min(...apart(rows, "y")) >= rows[0].size);
    if (isColumnNamed) assert.ok(Math.min(...apart(columns, "x")) >= columns[0].size);
    assert.ok(overflow <= 0, `${overflow}`);
    // Cells that are no squares are still found by the mouse.
    const cell = page.locator("#heat .cell").nth(3 * size + 7);
    await cell.scrollIntoViewIfNeeded();
    await cell.hover();
    const names = ["ocean", ...(await listed(page))];
    await becomes(() => pair(page), await told(names[3], names[7]));
  }
});

test("of k = 100 the grid shows the first words and says so", async () => {
  const page = await open("#word=ocean&k=100");
  await shows(page, "Nearest to “ocean”");
  assert.equal((await listed(page)).length, 100);
  assert.equal(await page.locator("#heat .cell").count(), 31 * 31);
  assert.match(await page.locator("#heat-legend").textContent(), /first 31 of/);
});
