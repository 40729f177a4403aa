/** Walking from word to word and from tab to tab: links, the browser's buttons, addresses that can be shared, and the options. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, listed, settled, shows } from "./support/explorer.js";

const { service, open } = await explorer();

const words = (answer) => answer.neighbors.map((hit) => hit.word);

test("the page begins with an example and the list is the service's own", async () => {
  const page = await open();
  await shows(page, "For example: Nearest to “ocean”");
  assert.deepEqual(await listed(page), words(await service.get("nearest", { word: "ocean", k: 20 })));
  assert.equal(new URL(page.url()).hash, "");
});

test("a word that is typed is asked for by Enter and by the button", async () => {
  const page = await open();
  await page.fill("#word", "piano");
  await page.press("#word", "Enter");
  await shows(page, "Nearest to “piano”");
  await page.fill("#word", "  river ");
  await page.click("button.go");
  await shows(page, "Nearest to “river”");
  assert.equal(new URL(page.url()).hash, "#word=river");
  assert.match(await page.title(), /river.*Kindred/);
});

test("a click on a neighbour walks there, and back and forward walk the same way", async () => {
  const page = await open("#word=ocean");
  const [next] = await listed(page);
  await page.click(`#answer li a >> nth=0`);
  await shows(page, `Nearest to “${next}”`);
  const [, second] = await listed(page);
  await page.click(`#answer li a >> nth=1`);
  await shows(page, `Nearest to “${second}”`);
  assert.equal(await page.inputValue("#word"), second);
  await page.goBack();
  await shows(page, `Nearest to “${next}”`);
  assert.equal(await page.inputValue("#word"), next);
  await page.goBack();
  await shows(page, "Nearest to “ocean”");
  await page.goForward();
  await shows(page, `Nearest to “${next}”`);
});

test("whoever gets the address sees the same", async () => {
  const page = await open("#word=ocean");
  await page.selectOption("#k", "10");
  await becomes(async () => (await listed(page)).length, 10);
  await page.selectOption("#limit", "5000");
  await becomes(() => new URL(page.url()).hash, "#word=ocean&k=10&limit=5000");
  await settled(page);
  const mine = await listed(page);
  assert.deepEqual(mine, words(await service.get("nearest", { word: "ocean", k: 10, vocab_limit: 5000 })));

  const other = await open(new URL(page.url()).hash);
  await shows(other, "Nearest to “ocean”");
  assert.deepEqual(await listed(other), mine);
  assert.equal(await other.inputValue("#k"), "10");
  assert.equal(await other.inputValue("#limit"), "5000");
  // The options go with whoever walks on.
  await other.click("#answer li a >> nth=0");
  await shows(other, `Nearest to “${mine[0]}”`);
  assert.match(other.url(), /k=10&limit=5000/);
});

test("any k and limit that an address names are kept", async () => {
  const page = await open("#word=ocean&k=7&limit=1234");
  await shows(page, "Nearest to “ocean”");
  assert.deepEqual(await listed(page), words(await service.get("nearest", { word: "ocean", k: 7, vocab_limit: 1234 })));
  assert.equal(await page.inputValue("#k"), "7");
  assert.equal(await page.inputValue("#limit"), "1234");
  await page.fill("#word", "river");
  await page.press("#word", "Enter");
  await shows(page, "Nearest to “river”");
  assert.equal(new URL(page.url()).hash, "#word=river&k=7&limit=1234");
});

test("each tab keeps its own answer, and stands in the address", async () => {
  const page = await open();
  const hash = () => new URL(page.url()).hash;
  const found = page.locator("#found");
  await page.click("#tab-analogy");
  await settled(page);
  assert.equal(hash(), "#tab=analogy");
  assert.equal(await found.isVisible(), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), "analogy");
  await page.keyboard.type("king - man + woman");
  await page.keyboard.press("Enter");
  await shows(page, "king - man + woman ≈");
  // Another tab has no answer yet, least of all this one.
  await page.click("#tab-compare");
  await settled(page);
  assert.deepEqual([hash(), await found.isVisible(), await page.title()], ["#tab=compare", false, "Kindred"]);
  await page.fill("#compare", "half a wo");
  await page.click("#tab-analogy");
  await shows(page, "king - man + woman ≈");
  assert.equal(hash(), "#analogy=king+-+man+%2B+woman");
  // The text that was typed there is still there.
  await page.click("#tab-compare");
  await settled(page);
  assert.equal(await page.inputValue("#compare"), "half a wo");
  await page.click("#tab-word");
  await shows(page, "For example: Nearest to “ocean”");

  const other = await open("#tab=compare&k=7");
  assert.equal(await other.locator("#tab-compare").getAttribute("aria-selected"), "true");
  assert.deepEqual([await other.inputValue("#k"), await other.locator("#found").isVisible()], ["7", false]);
});

test("back goes from a tab to the query before it, past tabs without one", async () => {
  const page = await open("#word=ocean");
  await page.click("#tab-compare");
  await page.click("#tab-odd");
  await page.click("#tab-analogy");
  await becomes(() => new URL(page.url()).hash, "#tab=analogy");
  await page.goBack();
  await shows(page, "Nearest to “ocean”");
  assert.equal(await page.locator("#tab-word").getAttribute("aria-selected"), "true");
  assert.equal(await page.locator("#found").isVisible(), true);
});

test("words are excluded, and the address says which", async () => {
  const page = await open("#word=ocean");
  const [first, second] = await listed(page);
  await page.fill("#exclude", `${first}, ${second}`);
  await page.keyboard.press("Enter");
  await becomes(async () => (await listed(page)).includes(first), false);
  await settled(page);
  const wanted = words(await service.post("nearest", { word: "ocean", k: 20, exclude: [first, second] }));
  assert.deepEqual(await listed(page), wanted);
  assert.equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("exclude"), `${first}, ${second}`);
  assert.ok((await page.locator("#curl").textContent()).includes(`exclude=${first}&exclude=${second}`));
  const other = await open(new URL(page.url()).hash);
  assert.deepEqual(await listed(other), wanted);
  assert.equal(await other.inputValue("#exclude"), `${first}, ${second}`);
  await other.fill("#exclude", "");
  await other.locator("#exclude").blur();
  await becomes(() => new URL(other.url()).hash, "#word=ocean");
});

test("words are searched for as a text where that is chosen", async () => {
  const page = await open();
  await page.fill("#word", "the deep ocean!");
  await page.check("#as-text");
  await shows(page, "Nearest to “the deep ocean!”");
  assert.equal(new URL(page.url()).hash, "#text=the+deep+ocean%21");
  assert.deepEqual(await listed(page), words(await service.get("nearest", { text: "the deep ocean!", k: 20 })));
  assert.equal(await page.locator("#answer .note").count(), 0);
  // A word of the answer is a word.
  await page.click("#answer li a >> nth=0");
  await becomes(() => page.isChecked("#as-text"), false);
  await settled(page);
});

test("an answer that has not changed is said to be unchanged", async () => {
  const page = await open("#word=ocean");
  const big = page.locator("#timings .big");
  assert.match(await big.textContent(), /in the service$/);
  const statuses = [];
  page.on("response", (response) => /nearest\?word=ocean(&|$)/.test(response.url()) && statuses.push(response.status()));
  await page.click("#answer li a >> nth=0");
  await becomes(async () => (await page.locator("#answer-title").textContent()) === "Nearest to “ocean”", false);
  await settled(page);
  await page.goBack();
  await shows(page, "Nearest to “ocean”");
  assert.deepEqual(statuses, [304]);
  assert.equal(await big.textContent(), "Unchanged (304): the service confirmed the answer that this page had");
  assert.deepEqual(await listed(page), words(await service.get("nearest", { word: "ocean", k: 20 })));
});

test("bars are as long as the scores", async () => {
  const page = await open("#word=ocean");
  const { neighbors } = await service.get("nearest", { word: "ocean", k: 20 });
  const shares = await page.locator(".bar").evaluateAll((bars) =>
    bars.map((bar) => bar.firstChild.getBoundingClientRect().width / bar.getBoundingClientRect().width),
  );
  assert.equal(shares.length, neighbors.length);
  neighbors.forEach(({ score }, place) => assert.ok(Math.abs(score - shares[place]) < 0.01, `${score} ${shares[place]}`));
  const scores = await page.locator("#answer .score").allTextContents();
  assert.deepEqual(scores, neighbors.map((hit) => hit.score.toFixed(3)));
});

test("the last of several quick questions is the one that is shown", async () => {
  const page = await open("#word=ocean");
  for (const word of ["piano", "river", "tree", "house", "green"]) {
    await page.evaluate((word) => (location.hash = `word=${word}`), word);
  }
  await shows(page, "Nearest to “green”");
  assert.deepEqual(await listed(page), words(await service.get("nearest", { word: "green", k: 20 })));
  assert.equal(await page.locator("#map .point.asked text").textContent(), "green");
});
