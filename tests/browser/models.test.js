/** Several models, very small ones, filters that nothing passes, and upper and lower case. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, listed, settled, shows } from "./support/explorer.js";
import { prepare } from "./support/service.js";

const pair = prepare({ yes: [1, 0], no: [-1, 0.1] });
const cases = prepare({ sea: [1, 0], Sea: [1, 0.1], SEA: [1, 0.2], lake: [1, 0.4], Lake: [1, 0.5], pond: [1, 0.9] });
const alone = prepare({ lonely: [1, 2], zero: [0, 0] });
const models = [["pair", pair], ["cases", cases], ["alone", alone]];
const { service, open } = await explorer(["--keep-tables", "false", ...models.flatMap(([name, folder]) => ["--model", `${name}=${folder}`])]);

test("a model is chosen, its facts are shown, and the address names it", async () => {
  const page = await open("#word=yes");
  await shows(page, "Nearest to “yes”");
  assert.deepEqual(await page.locator("#model option").allTextContents(), ["pair", "cases", "alone"]);
  await page.fill("#word", "sea");
  await page.selectOption("#model", "cases");
  await shows(page, "Nearest to “sea”");
  assert.equal(new URL(page.url()).hash, "#word=sea&model=cases");
  const facts = await page.locator("#facts").textContent();
  assert.ok(facts.includes("Namecases") && facts.includes("Words6"), facts);
  assert.ok((await page.locator("#curl").textContent()).includes("/models/cases/nearest?word=sea"));
  // Suggestions are this model's, and whoever walks on stays with it.
  await page.fill("#word", "");
  await page.locator("#word").pressSequentially("po");
  await page.click("#word-words [data-word=pond]");
  await shows(page, "Nearest to “pond”");
  assert.match(page.url(), /model=cases/);
  const other = await open(new URL(page.url()).hash);
  await shows(other, "Nearest to “pond”");
  assert.equal(await other.inputValue("#model"), "cases");
});

test("suggestions and questions are the chosen model's before anything was asked of it", async () => {
  const page = await open("#model=cases");
  await becomes(() => page.inputValue("#model"), "cases");
  await page.locator("#word").pressSequentially("la");
  await becomes(() => page.locator("#word-words [role=option]").evaluateAll((all) => all.map((o) => o.dataset.word)), ["lake"]);
});

test("two words: a list of one, a map, a grid and a comparison", async () => {
  const page = await open("#word=yes");
  await shows(page, "Nearest to “yes”");
  assert.deepEqual(await listed(page), ["no"]);
  assert.equal(await page.locator("#map .point").count(), 2);
  assert.equal(await page.locator("#heat .cell").count(), 4);
  assert.ok(!/NaN/.test(await page.locator("#map").innerHTML()));
  await page.evaluate(() => (location.hash = "compare=yes&with=no"));
  await shows(page, "“yes” and “no”");
  await page.evaluate(() => (location.hash = "analogy=yes"));
  await shows(page, "yes ≈");
  // The two terms nearly cancel each other, and no word is left.
  await page.evaluate(() => (location.hash = "analogy=yes+%2B+no"));
  await shows(page, "yes + no ≈");
  assert.match(await page.locator("#answer").textContent(), /No word passes these filters/);
  assert.match(await page.locator("#status").textContent(), /No word passes/);
});

test("a word with no neighbour at all, and one whose vector is zero", async () => {
  const page = await open("#word=lonely&model=alone", { failing: /422/ });
  await shows(page, "Nearest to “lonely”");
  assert.match(await page.locator("#answer").textContent(), /No word passes these filters/);
  assert.ok(!/NaN|Infinity|undefined/.test(await page.locator("main").innerHTML()));
  await page.evaluate(() => (location.hash = "word=zero&model=alone"));
  await becomes(async () => (await page.locator("#notice p").count()) > 0, true);
  const { detail } = await service.get("models/alone/nearest", { word: "zero" });
  assert.equal(await page.locator("#notice p").textContent(), detail);
});

test("a model that is not served is said to be none, and another one can be chosen", async () => {
  const page = await open("#word=sea&model=gone", { failing: /404/ });
  await becomes(async () => (await page.locator("#notice").textContent()).includes("gone"), true);
  await settled(page);
  await page.selectOption("#model", "cases");
  await shows(page, "Nearest to “sea”");
});

test("upper and lower case as one", async () => {
  const page = await open("#word=sea&model=cases");
  await shows(page, "Nearest to “sea”");
  assert.deepEqual(await listed(page), ["Sea", "SEA", "lake", "Lake", "pond"]);
  await page.check("#fold");
  await becomes(() => listed(page), ["lake", "pond"]);
  assert.match(page.url(), /fold=1/);
});
