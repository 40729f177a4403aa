/** Words suggested as one types, by mouse and keyboard, alone and in the middle of an expression. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, shows } from "./support/explorer.js";

const { service, open } = await explorer();

const suggested = (page, field) =>
  page.locator(`#${field}-words`).evaluate((list) => (list.hidden ? null : [...list.children].map((option) => option.dataset.word)));

const begins = async (prefix) => (await service.get("words", { prefix, limit: 8 })).words.map(({ word }) => word);

/** Types at the end of what stands there, key by key. */
async function type(page, field, text) {
  await page.locator(`#${field}`).focus();
  await page.keyboard.press("End");
  await page.keyboard.type(text);
}

test("typing suggests the most frequent words that begin so", async () => {
  const page = await open();
  await type(page, "word", "oce");
  await becomes(() => suggested(page, "word"), await begins("oce"));
  await type(page, "word", "a");
  await becomes(() => suggested(page, "word"), await begins("ocea"));
});

test("a click on a suggestion asks for it", async () => {
  const page = await open();
  await type(page, "word", "pian");
  const words = await begins("pian");
  await becomes(() => suggested(page, "word"), words);
  await page.click(`#word-words [role=option] >> nth=1`);
  await shows(page, `Nearest to “${words[1]}”`);
  assert.equal(await suggested(page, "word"), null);
  assert.equal(await page.inputValue("#word"), words[1]);
});

test("arrow keys choose, Enter takes what is chosen", async () => {
  const page = await open();
  await type(page, "word", "riv");
  const words = await begins("riv");
  await becomes(() => suggested(page, "word"), words);
  const chosen = () => page.locator("#word-words [aria-selected=true]").evaluateAll((options) => options.map((o) => o.dataset.word));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.deepEqual(await chosen(), [words[1]]);
  await page.keyboard.press("ArrowUp");
  assert.deepEqual(await chosen(), [words[0]]);
  await page.keyboard.press("ArrowUp");
  assert.deepEqual(await chosen(), []);
  await page.keyboard.press("ArrowUp");
  assert.deepEqual(await chosen(), [words.at(-1)]);
  await page.keyboard.press("Enter");
  await shows(page, `Nearest to “${words.at(-1)}”`);
});

test("Escape closes the list and keeps what was typed; an arrow opens it again", async () => {
  const page = await open();
  await type(page, "word", "riv");
  await becomes(() => suggested(page, "word"), await begins("riv"));
  await page.keyboard.press("Escape");
  assert.equal(await suggested(page, "word"), null);
  assert.equal(await page.inputValue("#word"), "riv");
  await page.keyboard.press("ArrowDown");
  await becomes(() => suggested(page, "word"), await begins("riv"));
});

test("the list goes when the field is left, or is empty, or the word is complete", async () => {
  const page = await open();
  await type(page, "word", "riv");
  await becomes(() => suggested(page, "word"), await begins("riv"));
  await page.keyboard.press("Tab");
  assert.equal(await suggested(page, "word"), null);
  await page.fill("#word", "");
  await page.waitForTimeout(300);
  assert.equal(await suggested(page, "word"), null);
  const { words } = await service.get("words", { prefix: "z", limit: 100 });
  for (const { word } of words) {
    if ((await begins(word)).length > 1) continue;
    await type(page, "word", word.slice(0, -1));
    await becomes(async () => (await suggested(page, "word"))?.includes(word), true);
    await page.keyboard.type(word.at(-1));
    return becomes(() => suggested(page, "word"), null);
  }
  assert.fail("the model has no such word");
});

test("Enter without a choice asks for what was typed, and no late list covers the answer", async () => {
  const page = await open();
  await page.route("**/words?*", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 400));
    await route.continue().catch(() => {});
  });
  await type(page, "word", "tree");
  await page.keyboard.press("Enter");
  await shows(page, "Nearest to “tree”");
  await page.waitForTimeout(700);
  assert.equal(await suggested(page, "word"), null);
});

test("late suggestions never replace newer ones", async () => {
  const page = await open();
  await page.route("**/words?prefix=p&*", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await route.continue().catch(() => {});
  });
  await type(page, "word", "pi");
  await becomes(() => suggested(page, "word"), await begins("pi"));
  await page.waitForTimeout(700);
  assert.deepEqual(await suggested(page, "word"), await begins("pi"));
});

test("in an expression the word at the caret is completed, and nothing else", async () => {
  const page = await open("#analogy=king");
  await page.fill("#analogy", "king - ma + woman");
  await page.locator("#analogy").evaluate((field) => field.setSelectionRange(9, 9));
  await page.keyboard.type("n");
  const words = await begins("man");
  await becomes(() => suggested(page, "analogy"), words);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await page.inputValue("#analogy"), `king - ${words[1]} + woman`);
  // A second Enter asks.
  await page.fill("#analogy", "king - man + woman");
  await page.keyboard.press("Enter");
  await shows(page, "king - man + woman ≈");
});

test("in an expression, sign, weight, parentheses and quotes before the word stay", async () => {
  const page = await open("#analogy=king");
  for (const [before, after] of [
    ["king - wom", "king - woman "],
    ["king -wom", "king -woman "],
    ["0.5*wom", "0.5*woman "],
    ["king - 2*(man + wom", "king - 2*(man + woman "],
    ["-0.5*wom", "-0.5*woman "],
    ['king - "wom', "king - woman "],
    ["1e-1*wom", "1e-1*woman "],
  ]) {
    await page.fill("#analogy", before.slice(0, -1));
    await type(page, "analogy", before.slice(-1));
    await becomes(async () => (await suggested(page, "analogy"))?.[0], "women");
    await page.click("#analogy-words [data-word=woman]");
    assert.equal(await page.inputValue("#analogy"), after);
  }
});

test("both words of a comparison have suggestions of their own", async () => {
  const page = await open("#compare=coffee&with=tea");
  await page.fill("#with", "");
  await type(page, "with", "choc");
  await becomes(() => suggested(page, "with"), await begins("choc"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await shows(page, "“coffee” and “chocolate”");
});
