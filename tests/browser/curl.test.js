/** The command that asks the same: run in a real shell, it answers what is on the screen. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { explorer, listed, shows } from "./support/explorer.js";
import { ODD_WORDS, oddRows } from "./support/odd_words.js";
import { prepare } from "./support/service.js";

const { open } = await explorer(["--model", prepare(oddRows()), "--keep-tables", "false"]);

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
