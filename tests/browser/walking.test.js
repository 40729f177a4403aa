/** Walking from word to word: links, the browser's buttons, addresses that can be shared, and the options. */

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
