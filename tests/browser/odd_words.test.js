/** Words that are code, markup, very long, from right to left or in pieces: all of them are only words. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, listed, settled, shows } from "./support/explorer.js";
import { ODD_WORDS, oddRows } from "./support/odd_words.js";
import { prepare } from "./support/service.js";

const { service, open } = await explorer(["--model", prepare(oddRows()), "--keep-tables", "false"]);

const ask = (page, question) => page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams(question)}`);

test("a model without the examples' words begins with one of its own", async () => {
  const page = await open();
  await becomes(() => page.locator("#found").isVisible(), true);
  const { words } = await service.get("words", { prefix: "", limit: 300 });
  assert.deepEqual(await page.locator("#examples .chip").allTextContents(), [words.at(-1).word]);
});

test("every odd word with its neighbours, in list, map and grid", async () => {
  const page = await open();
  // Once all of them are in one list; then each is asked for, with a few neighbours, which takes less to draw.
  for (const [word, k] of [["c++", 100], ...ODD_WORDS.map((word) => [word, 6])]) {
    await ask(page, { word, k });
    await shows(page, `Nearest to “${word}”`);
    assert.equal(await page.inputValue("#word"), word.replaceAll(/[\n\r]/g, ""));
    const { neighbors } = await service.get("nearest", { word, k });
    if (k === 100) assert.equal(neighbors.length, ODD_WORDS.length - 1);
    assert.deepEqual(await listed(page), neighbors.map((hit) => hit.word));
    assert.equal(await page.locator("#map .asked text").textContent(), word);
    assert.equal(await page.locator("#map script, #answer script, #answer img, #heat script").count(), 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${word}: ${wide} px too wide`);
  }
});

test("odd words can be clicked", async () => {
  const page = await open("#word=c%2B%2B&k=100");
  const words = ["<img src=x onerror=alert(1)>", 'say "hi"', "a&b=c", "#word=x", "%", "a%2Bb", "..", "שלום", "👩‍👩‍👧", "a\u2028b", "__proto__"];
  // Every list has all other words: so one click leads to the next.
  for (const word of words) {
    assert.ok(ODD_WORDS.includes(word));
    const place = (await listed(page)).indexOf(word);
    await page.locator("#answer li a").nth(place).click();
    await shows(page, `Nearest to “${word}”`);
  }
  await page.goBack();
  await shows(page, `Nearest to “${words.at(-2)}”`);
});

test("odd words as terms, beside each other, and as unknown words", async () => {
  const page = await open();
  for (const word of ["<script>alert(1)</script>", 'say "hi"', "three little words", "-x", "שלום"]) {
    const written = `"${word.replace(/["\\]/g, "\\$&")}" + c++`;
    await ask(page, { analogy: written });
    await shows(page, `${written} ≈`);
    assert.equal(await page.locator(".terms li").first().textContent(), `+ ${word}`);
    await ask(page, { compare: word, with: "it's" });
    await shows(page, `“${word}” and “it's”`);
  }
});

test("an unknown word that is markup is told as text", async () => {
  const page = await open("", { failing: /404/ });
  await ask(page, { word: "<script>alert(2)</script>" });
  await becomes(() => page.locator("#notice h2").textContent(), "Unknown word");
  await settled(page);
  assert.equal(await page.locator("#notice b").textContent(), "<script>alert(2)</script>");
  const chips = await page.locator("#notice .chip").allTextContents();
  assert.ok(chips.includes("<script>alert(1)</script>"), `${chips}`);
  await page.click("#notice .chip >> nth=0");
  await shows(page, `Nearest to “${chips[0]}”`);
});

test("suggestions write quotes where an expression needs them", async () => {
  const page = await open("#analogy=c%2B%2B");
  for (const [typed, word, written] of [
    ["new", "new york", '"new york" '],
    ['c++ - "three li', "three little words", 'c++ - "three little words" '],
    ["c++ + say", 'say "hi"', 'c++ + "say \\"hi\\"" '],
  ]) {
    await page.fill("#analogy", "");
    await page.locator("#analogy").pressSequentially(typed);
    await page.locator("#analogy-words [role=option]").filter({ hasText: word }).first().click();
    assert.equal(await page.inputValue("#analogy"), written);
  }
});
