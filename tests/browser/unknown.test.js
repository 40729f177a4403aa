/** Words that the model does not have, and expressions that can't be read. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, goTo, listed, settled, shows } from "./support/explorer.js";

const { service, open } = await explorer();
const failing = /40[04]/;

const notice = (page) => page.locator("#notice").textContent();

test("an unknown word is answered with the service's suggestions, and a click takes one", async () => {
  const page = await open("#word=oceann", { failing });
  await becomes(() => page.locator("#notice h2").textContent(), "Unknown word");
  const { unknown } = await service.get("nearest", { word: "oceann" });
  const chips = await page.locator("#notice .chip").allTextContents();
  assert.ok(chips.length > 0);
  assert.deepEqual(chips, unknown[0].suggestions);
  assert.equal(await page.locator("#found").isVisible(), false);
  await page.click("#notice .chip >> nth=0");
  await shows(page, `Nearest to “${chips[0]}”`);
  assert.equal(await notice(page), "");
});

test("all unknown words of an expression are named, and each is replaced where it stands", async () => {
  const page = await open(`#${new URLSearchParams({ analogy: "kingg - man + womann" })}`, { failing });
  await becomes(() => page.locator("#notice h2").textContent(), "Unknown words");
  assert.deepEqual(await page.locator("#notice b").allTextContents(), ["kingg", "womann"]);
  await page.click("#notice .chip:text-is('king')");
  await becomes(() => page.locator("#notice h2").textContent(), "Unknown word");
  assert.equal(await page.inputValue("#analogy"), "king - man + womann");
  await page.click("#notice .chip:text-is('woman')");
  await shows(page, "king - man + woman ≈");
});

test("an unknown word is replaced wherever it stands, and only there", async () => {
  const page = await open("", { failing });
  for (const [expression, wanted] of [
    ["seas - seaz + seazon", "seas - sea + seazon"],
    ["seaz -seaz + 2*seaz - 1e-1*seaz", "sea -sea + 2*sea - 1e-1*sea"],
    ['0.5*(seaz + "seaz") - well-seaz', "0.5*(sea + sea) - well-seaz"],
  ]) {
    await goTo(page, `#${new URLSearchParams({ analogy: expression })}`);
    await page.locator("#notice p:has(b:text-is('seaz')) + .chips .chip:text-is('sea')").click();
    await becomes(() => page.inputValue("#analogy"), wanted);
    await settled(page);
  }
});

test("a word that is an expression without spaces comes with that expression", async () => {
  const page = await open("#analogy=king-man%2Bwoman", { failing });
  await page.click("#notice .chip:text-is('king - man + woman')");
  await shows(page, "king - man + woman ≈");
  assert.equal(await notice(page), "");
  await goTo(page, "#word=king-man%2Bwoman");
  await page.click("#notice .chip:text-is('king - man + woman')");
  await becomes(() => page.inputValue("#analogy"), "king - man + woman");
  await shows(page, "king - man + woman ≈");
  // A part of an expression is named, and is no link: how its sign goes with the others is not certain.
  await goTo(page, `#${new URLSearchParams({ analogy: "paris - king-man+woman" })}`);
  await becomes(async () => (await notice(page)).includes("the expression king - man + woman?"), true);
  assert.equal(await page.locator("#notice a").count(), 0);
});

test("unknown words of a comparison", async () => {
  const page = await open("#compare=coffe&with=zzzzqqq", { failing });
  await becomes(() => page.locator("#notice h2").textContent(), "Unknown words");
  await page.click("#notice .chip:text-is('coffee')");
  await becomes(() => page.locator("#notice b").allTextContents(), ["zzzzqqq"]);
  assert.equal(await page.inputValue("#compare"), "coffee");
});

test("several words where one is wanted can be taken as a text", async () => {
  const page = await open("#word=the deep blue ocean qqqq", { failing });
  await page.getByRole("link", { name: /Search for it as a text/ }).click();
  await shows(page, "Nearest to “the deep blue ocean qqqq”");
  const { neighbors } = await service.get("nearest", { text: "the deep blue ocean qqqq", k: 20 });
  assert.deepEqual(await listed(page), neighbors.map((hit) => hit.word));
  assert.match(await page.locator("#answer .note").textContent(), /qqqq/);
  assert.equal(await page.inputValue("#word"), "the deep blue ocean qqqq");
});

test("what can't be read is pointed at", async () => {
  const page = await open("", { failing });
  for (const expression of ["king - - man", "king man", "(king + man", "king )", 'king - "man', "2*", "kö🦀nig + + x"]) {
    await goTo(page, `#${new URLSearchParams({ analogy: expression })}`);
    await becomes(() => page.locator("#notice h2").textContent(), "The expression can't be read");
    const { column, detail } = await service.post("analogy", { expression });
    const [written, pointer] = (await page.locator(".pointed").textContent()).split("\n");
    assert.equal(written, expression);
    assert.equal(pointer.indexOf("^"), column - 1, expression);
    assert.equal(pointer.trim(), "^", expression);
    assert.ok((await notice(page)).includes(detail), expression);
  }
});
