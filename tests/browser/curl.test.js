/** Answers to take away: as a command that asks the same in a real shell, as CSV; map and matrix as SVG. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { explorer, goTo, listed, shows } from "./support/explorer.js";
import { ODD_WORDS, oddRows } from "./support/odd_words.js";
import { prepare } from "./support/service.js";

const { service, open } = await explorer(["--model", prepare(oddRows()), "--keep-tables", "false"]);

const run = (command) => JSON.parse(execFileSync("sh", ["-c", command.replace(/^curl/, "curl --silent --show-error --fail")], { encoding: "utf8" }));

test("for the neighbours of a word, whatever it means to a shell or an address", async () => {
  const page = await open();
  for (const word of ODD_WORDS.filter((word) => /[^\w]/.test(word) && /[\x21-\x7e]/.test(word)).filter((_, place) => place % 2 === 0).concat("it's", "$(id)", "`id`", "日本語")) {
    await page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams({ word, k: 10 })}`);
    await shows(page, `Nearest to “${word}”`);
    const { neighbors } = run(await page.locator("#curl").textContent());
    assert.deepEqual(neighbors.map((hit) => hit.word), await listed(page), word);
  }
});

test("for analogies and comparisons with quotes in their words", async () => {
  const page = await open();
  for (const [expression, other] of [['"say \\"hi\\"" - it\'s + c++', "it's"], ["$HOME + `id` - 2*\"$(id)\"", "$HOME"]]) {
    await page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams({ analogy: expression, limit: 40 })}`);
    await shows(page, `${expression} ≈`);
    const { neighbors } = run(await page.locator("#curl").textContent());
    assert.deepEqual(neighbors.map((hit) => hit.word), await listed(page));
    await page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams({ compare: other, with: 'say "hi"' })}`);
    await shows(page, `“${other}” and “say "hi"”`);
    const command = await page.locator("#curl").textContent();
    assert.ok(command.includes("-H 'Content-Type: application/json' -d "), "as curl 7.74 knows it");
    const { results } = run(command);
    const words = new Set(results.flatMap((result) => result.neighbors.map((hit) => hit.word)));
    const own = [other, 'say "hi"'];
    assert.deepEqual((await page.locator(".both a").allTextContents()).sort(), [...words].filter((word) => !own.includes(word)).sort());
  }
});

test("the button copies it", async () => {
  const page = await open("#word=c%2B%2B", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.click("#copy-curl");
  await page.locator("#copy-curl:text-is('Copied')").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator("#curl").textContent());
});

test("where pages may not copy, the command is selected", async () => {
  const page = await open("#word=c%2B%2B", {
    before: (page) => page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined })),
  });
  await page.click("#copy-curl");
  await page.locator("#copy-curl", { hasText: "Selected" }).waitFor();
  assert.equal(await page.evaluate(() => getSelection().toString()), await page.locator("#curl").textContent());
});

/** Clicks a button and returns what it saves: the file's name and text. */
async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
}

/** Cells of CSV, by RFC 4180; numbers as numbers. */
function cells(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1).push(quoted === undefined ? Number(plain) : quoted.replaceAll('""', '"'));
    if (end !== ",") rows.push([]);
  }
  assert.deepEqual(rows.pop(), []);
  return rows;
}

test("an answer is saved as CSV: all words as they are, and all digits of their scores", async () => {
  const page = await open("#word=c%2B%2B&k=100");
  const { neighbors } = await service.get("nearest", { word: "c++", k: 100 });
  const [name, text] = await saved(page, "#save-table");
  assert.equal(name, "kindred-nearest-to-c.csv");
  assert.deepEqual(cells(text), [["word", "score", "row"], ...neighbors.map(({ word, score, row }) => [word, score, row])]);

  const expression = '"say \\"hi\\"" - it\'s + c++';
  await goTo(page, `#${new URLSearchParams({ analogy: expression, k: 6 })}`);
  const analogy = await service.post("analogy", { expression, k: 6, explain: true });
  const [columns, ...rows] = cells((await saved(page, "#save-table"))[1]);
  assert.deepEqual(columns.slice(3), ['contribution of + say "hi"', "contribution of − it's", "contribution of + c++"]);
  assert.deepEqual(rows, analogy.neighbors.map(({ word, score, row, terms }) => [word, score, row, ...terms.map((term) => term.contribution)]));

  await goTo(page, "#compare=true&with=null&k=6");
  const compared = cells((await saved(page, "#save-table"))[1]);
  assert.deepEqual(compared[0], ["word", "near", "score with true", "score with null"]);
  assert.deepEqual(compared.slice(1).map(([word]) => word).sort(), (await page.locator(".both a").allTextContents()).sort());
  await goTo(page, `#${new URLSearchParams({ odd: "true, null, word" })}`);
  const { ranked } = await service.post("odd-one-out", { words: ["true", "null", "word"] });
  assert.deepEqual(cells((await saved(page, "#save-table"))[1]).slice(1), ranked.map(({ word, score, row }) => [word, score, row]));
});

test("map and matrix are saved as SVG that needs nothing of the page", async () => {
  const page = await open("#word=c%2B%2B&k=20", { colorScheme: "dark" });
  for (const [id, shape, count] of [["map", "circle", 21], ["heat", "rect", 21 * 21 + 1]]) {
    const [name, text] = await saved(page, `#save-${id}`);
    assert.equal(name, `kindred-nearest-to-c-${id}.svg`);
    for (const part of ["class=", "style=", "var(", "href=", "<a", "oklab", "script>"]) assert.ok(!text.includes(part), part);
    const drawn = await page.evaluate(([text, shape]) => {
      const { documentElement: root } = new DOMParser().parseFromString(text, "image/svg+xml");
      const fills = [...root.querySelectorAll(shape)].map((element) => element.getAttribute("fill"));
      const names = [...root.querySelectorAll("text")].map((name) => name.textContent);
      return { root: root.localName, fills, names, ground: root.firstElementChild.getAttribute("fill") };
    }, [text, shape]);
    assert.equal(drawn.root, "svg");
    assert.equal(drawn.fills.length, count, id);
    assert.ok(drawn.fills.every((fill) => /^rgb\(\d+,\d+,\d+\)$/.test(fill)), `${drawn.fills}`);
    assert.ok(new Set(drawn.fills).size > 5);
    assert.ok(drawn.names.includes("c++"));
    // Dark, as it is on the screen.
    assert.ok(drawn.ground.match(/\d+/g).every((part) => part < 80), drawn.ground);
  }
});
