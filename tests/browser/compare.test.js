/** Two words compared: whose neighbours are whose, with the similarities to both. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { explorer, shows } from "./support/explorer.js";

const { service, open } = await explorer();

test("neighbours are those of one, of both and of the other, with exact scores", async () => {
  const page = await open("#compare=coffee&with=tea");
  await shows(page, "“coffee” and “tea”");
  const near = async (word) => (await service.get("nearest", { word, k: 20 })).neighbors.map((hit) => hit.word);
  const [ofOne, ofOther] = [await near("coffee"), await near("tea")];
  const own = ["coffee", "tea"];
  const parts = await page.locator(".parts section").evaluateAll((parts) =>
    parts.map((part) => [...part.querySelectorAll("li")].map((row) => [
      row.querySelector("a").textContent,
      ...[...row.querySelectorAll(".score")].map((score) => Number(score.textContent.replace("−", "-"))),
    ])),
  );
  const wanted = [
    ofOne.filter((word) => !ofOther.includes(word)),
    ofOne.filter((word) => ofOther.includes(word)),
    ofOther.filter((word) => !ofOne.includes(word)),
  ].map((words) => words.filter((word) => !own.includes(word)).sort());
  assert.deepEqual(parts.map((part) => part.map(([word]) => word).sort()), wanted);

  const rows = parts.flat();
  const pairs = rows.flatMap(([word]) => own.map((other) => [other, word]));
  const { results } = await service.post("similarity", { pairs });
  rows.forEach(([word, one, other], place) => {
    assert.equal(one, Number(results[2 * place].score.toFixed(2)), word);
    assert.equal(other, Number(results[2 * place + 1].score.toFixed(2)), word);
  });
  const between = await service.post("similarity", { pairs: [own] });
  assert.equal(await page.locator("#answer strong").textContent(), between.results[0].score.toFixed(3));
});

test("two fields and Enter compare, and a word in the list walks on", async () => {
  const page = await open();
  await page.click("#tab-compare");
  await page.keyboard.type("river");
  await page.keyboard.press("Tab");
  await page.keyboard.type("lake");
  await page.keyboard.press("Enter");
  await shows(page, "“river” and “lake”");
  const word = await page.locator(".both a").first().textContent();
  await page.locator(".both a").first().click();
  await shows(page, `Nearest to “${word}”`);
});

test("a field that is empty gets the focus instead of an answer", async () => {
  const page = await open();
  await page.click("#tab-compare");
  await page.fill("#compare", "river");
  await page.click("button.go");
  assert.equal(await page.evaluate(() => document.activeElement.id), "with");
});

test("a word with itself", async () => {
  const page = await open("#compare=river&with=river");
  await shows(page, "“river” and “river”");
  assert.equal(await page.locator("#answer strong").textContent(), "1.000");
});
