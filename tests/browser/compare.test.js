/** Words compared: whose neighbours are whose of two, and which of several does not belong. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, settled, shows } from "./support/explorer.js";

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

test("a field that is empty gets the focus and a message instead of an answer, on every tab", async () => {
  const page = await open();
  const missing = page.locator("#missing");
  for (const [tab, field, said] of [
    ["word", "word", /^Type a word first/], ["analogy", "analogy", /^Type an expression first/], ["compare", "compare", /^Type the first word/],
    ["odd", "odd", /^Type three words or more/], ["classify", "classify", /^Type a text first/], ["expand", "expand", /^Type a text first/],
  ]) {
    await page.click(`#tab-${tab}`);
    await settled(page);
    assert.equal(await missing.isVisible(), false, tab);
    await page.click("button.go");
    assert.match(await missing.textContent(), said);
    assert.equal(await missing.getAttribute("role"), "alert");
    assert.equal(await page.evaluate(() => document.activeElement.id), field);
    assert.equal(await page.locator(`#${field}`).getAttribute("aria-invalid"), "true");
  }
  await page.click("#tab-compare");
  await page.fill("#compare", "river");
  await page.click("button.go");
  assert.equal(await page.evaluate(() => document.activeElement.id), "with");
  assert.match(await missing.textContent(), /^Type the second word/);
  // It goes when something is typed.
  await page.keyboard.type("l");
  assert.equal(await missing.isVisible(), false);
  assert.equal(await page.locator("#with").getAttribute("aria-invalid"), null);
  await page.click("#tab-odd");
  await page.fill("#odd", "one two");
  await page.keyboard.press("Enter");
  assert.match(await missing.textContent(), /^Type three words or more/);
});

test("the odd one out: the service's ranking, the last one marked, and a map around the mean", async () => {
  const page = await open();
  await page.click("#tab-odd");
  await page.keyboard.type("breakfast, cereal, dinner, lunch");
  await page.keyboard.press("Enter");
  await shows(page, "Odd one out: cereal");
  assert.equal(new URL(page.url()).hash, "#odd=breakfast%2C+cereal%2C+dinner%2C+lunch");
  const { ranked } = await service.post("odd-one-out", { words: ["breakfast", "cereal", "dinner", "lunch"] });
  const rows = await page.locator("#answer li").evaluateAll((rows) => rows.map((row) => [row.querySelector("a").textContent, row.querySelector(".score").textContent]));
  assert.deepEqual(rows, ranked.map(({ word, score }) => [word, score.toFixed(3)]));
  assert.deepEqual(await page.locator("#answer .odd a").allTextContents(), ["cereal"]);
  assert.match(await page.locator("#status").textContent(), /^The odd one out is cereal: 0\.56/);
  assert.equal(await page.locator("#map .asked text").textContent(), "the mean");
  assert.equal(await page.locator("#heat .cell").count(), 25);
  const label = await page.locator('#map [data-word="lunch"]').getAttribute("aria-label");
  const lunch = ranked.find(({ word }) => word === "lunch");
  assert.equal(label, `lunch: cosine distance ${(1 - lunch.score).toFixed(4)} to the query`);
  await page.click("#answer .odd a");
  await shows(page, "Nearest to “cereal”");
});

test("an unknown word among several is replaced in the list", async () => {
  const page = await open(`#${new URLSearchParams({ odd: "breakfast dinnerr lunch" })}`, { failing: /404/ });
  await page.locator("#notice .chip:text-is('dinner')").click();
  await becomes(() => page.inputValue("#odd"), "breakfast, dinner, lunch");
  await settled(page);
  assert.equal(await page.locator("#answer li").count(), 3);
});

test("a word with itself", async () => {
  const page = await open("#compare=river&with=river");
  await shows(page, "“river” and “river”");
  assert.equal(await page.locator("#answer strong").textContent(), "1.000");
});
