/** Documents found by a text: snippets, attributes that filter, and what is said where there are none. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { findings, OF_COLOURS, OF_WIDTHS } from "./support/axe.js";
import { THINGS, prepareDocuments, prepareWords } from "./support/documents.js";
import { becomes, explorer, goTo, settled, shows, typeTwoLines } from "./support/explorer.js";
import { temporaryFolder } from "./support/service.js";
import { inBoth, take, wide } from "./support/views.js";

const NOTES = [
  { id: "pond", body: `${"Here is nothing to see. ".repeat(30)}A frog sat in the pond. ${"And so on it goes. ".repeat(30)}`, tags: ["wet", "green plants"], is_new: true, price: -1.5 },
  { id: "<b>code</b>", body: "Bread <img src=x onerror=alert(1)> &amp; water", tags: [], price: 3 },
];
const written = join(temporaryFolder(), "notes.jsonl");
writeFileSync(written, NOTES.map((one) => `${JSON.stringify(one)}\n`).join(""));

const words = prepareWords();
const models = { things: prepareDocuments(THINGS, words), notes: prepareDocuments(written, words, "body"), words };
const settings = Object.entries(models).flatMap(([name, folder]) => ["--model", `${name}=${folder}`]);
const { service, open } = await explorer(["--keep-tables", "false", ...settings]);

const hash = (question) => `#${new URLSearchParams(question)}`;
const parameters = (page) => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));
const lines = (page) => page.locator("#answer .documents li");
const keys = (page) => page.locator("#answer .documents li > a").allTextContents();
const notes = (page) => page.locator("#answer .note").allTextContents();

const text = "a warm drink for a cold evening";

test("documents with their scores, snippets and attributes, the nearest first", async () => {
  const page = await open();
  await page.click("#tab-documents");
  assert.equal(await page.locator("#no-documents").isVisible(), false);
  await page.keyboard.type(text);
  await page.click("button.go");
  await shows(page, `Documents near “${text}”`);
  assert.deepEqual(parameters(page), { documents: text });
  const { neighbors } = await service.post("nearest", { text, k: 20, with_attributes: true });
  assert.deepEqual(await keys(page), neighbors.map(({ word }) => word));
  const [first] = neighbors;
  const line = lines(page).first();
  assert.equal(await line.locator(".score").textContent(), first.score.toFixed(3));
  assert.equal(await line.locator(".snippet").textContent(), first.attributes.text);
  assert.deepEqual(await line.locator(".chip").allTextContents(), ["title Hot chocolate", "category food"]);
  assert.match(await page.locator("#status").textContent(), /^20 documents near a warm drink.*: hot-chocolate 0\.87, /);
  assert.equal(await page.locator(".picture:visible").count(), 0);
  assert.match(await page.locator("#curl").textContent(), /"text":"a warm drink for a cold evening","k":20,"with_attributes":true.*\n.*\/nearest'$/s);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save-table")]);
  assert.match(readFileSync(await download.path(), "utf8"), /^"key","score","row","title","category","text","year"\r\n"hot-chocolate",0\.8/);
});

test("the words of the query are marked in the snippets", async () => {
  const page = await open(hash({ documents: "Ein COLD winter evening!", k: 10 }));
  await shows(page, "Documents near “Ein COLD winter evening!”");
  const line = lines(page).filter({ has: page.getByRole("link", { name: "hot-chocolate", exact: true }) });
  assert.deepEqual(await line.locator("mark").allTextContents(), ["cold", "winter", "evening"]);
  await goTo(page, hash({ documents: "frog in a pond", model: "notes" }));
  const snippet = lines(page).first().locator(".snippet");
  assert.deepEqual(await snippet.locator("mark").allTextContents(), ["A", "frog", "in", "pond"]);
  assert.match(await snippet.textContent(), /^….* A frog sat in the pond\. .*…$/);
});

test("a snippet is the piece with most of the words, or the beginning", async () => {
  const page = await open("#tab=documents");
  const snippet = (text, query) =>
    page.evaluate(async ([text, query]) => {
      const { snippet, wordsOf } = await import(new URL("explorer/snippet.js", document.baseURI).href);
      const pieces = snippet(text, wordsOf(query));
      return [pieces.map(({ text, isWord }) => (isWord ? `[${text}]` : text)).join("")];
    }, [text, query]).then(([shown]) => shown);
  const filler = (words) => "lorem ipsum dolor sit amet ".repeat(words / 5);
  for (const [text, query, expected] of [
    ["", "frog", ""],
    ["A frog, a Frog; frogs.", "frog frog", "A [frog], a [Frog]; frogs."],
    ["don't say don", "don't don", "[don't] say [don]"],
    ["c++ and C", "c++", "[c]++ and [C]"],
    ["İstanbul and Ankara", "ankara", "İstanbul and Ankara"],
    ["蛙は池に住む。", "蛙 池", "[蛙]は[池]に住む。"],
    ["nothing here", "!?", "nothing here"],
  ]) {
    assert.equal(await snippet(text, query), expected, `${text} / ${query}`);
  }
  const start = await snippet(filler(100), "frog");
  assert.ok(start.startsWith("lorem") && start.endsWith("…") && start.length <= 201 && start.length > 180, start);
  const end = await snippet(`${filler(100)}the frog`, "the frog");
  assert.ok(end.startsWith("…") && end.endsWith("[the] [frog]") && end.length > 180, end);
  // "the" is said first, but says less than two words that stand together later.
  const best = await snippet(`the ${filler(100)}a green frog ${filler(100)}the end`, "the green frog");
  assert.match(best, /^….*\[green\] \[frog\].*…$/);
  // No character is divided, where there are no spaces to divide at.
  const pictures = await snippet(`${"🐸".repeat(300)}`, "frog");
  assert.match(pictures, /^(🐸)+…$/u);
  // A long text takes no time.
  const began = Date.now();
  await snippet(`${"the frog and the pond ".repeat(50_000)}`, "the frog and the pond");
  assert.ok(Date.now() - began < 3000, `${Date.now() - began} ms`);
});

test("an attribute leads to the documents that have it, and its test can be removed", async () => {
  const page = await open(hash({ documents: text, k: 10 }));
  await shows(page, `Documents near “${text}”`);
  await lines(page).first().locator("a.chip", { hasText: "category food" }).click();
  await becomes(() => page.inputValue("#filter"), "category = food");
  await becomes(() => page.locator("#passing").textContent(), "25 of 151 documents pass");
  await settled(page);
  assert.deepEqual(parameters(page), { documents: text, k: "10", filter: "category = food" });
  const { neighbors } = await service.post("nearest", { text, k: 10, filter: "category = food" });
  assert.deepEqual(await keys(page), neighbors.map(({ word }) => word));
  // It is no link to where one is.
  assert.equal(await page.locator("a.chip", { hasText: "category food" }).count(), 0);
  await page.locator("#tests .chip").click();
  await becomes(() => page.inputValue("#filter"), "");
  await settled(page);
  await page.goBack();
  await becomes(() => page.inputValue("#filter"), "category = food");
  await settled(page);
  await goTo(page, hash({ documents: text, filter: "category = music AND year EXISTS" }));
  assert.deepEqual(await notes(page), ["No document passes this filter."]);
});

test("tests of all types of attributes are filters", async () => {
  const page = await open(hash({ documents: "frog", model: "notes" }));
  await shows(page, "Documents near “frog”");
  for (const [chip, filter, found] of [
    ["tags green plants", 'tags = "green plants"', ["pond"]], ["is_new true", "is_new = true", ["pond"]], ["price -1.5", "price = -1.5", ["pond"]],
  ]) {
    await lines(page).first().locator("a.chip", { hasText: chip }).click();
    await becomes(() => page.inputValue("#filter"), filter);
    await settled(page);
    assert.deepEqual(await keys(page), found);
    await page.goBack();
    await settled(page);
  }
  await goTo(page, hash({ documents: "frog", model: "notes", filter: "price > 5 OR price < 0" }));
  await lines(page).first().locator("a.chip", { hasText: "wet" }).click();
  await becomes(() => page.inputValue("#filter"), "(price > 5 OR price < 0) AND tags = wet");
  await settled(page);
  assert.deepEqual(await keys(page), ["pond"]);
});

test("a key leads to the neighbours of its document, and back", async () => {
  const page = await open(hash({ documents: text }));
  await shows(page, `Documents near “${text}”`);
  await lines(page).first().locator("a").first().click();
  await shows(page, "Nearest to “hot-chocolate”");
  await page.goBack();
  await shows(page, `Documents near “${text}”`);
  assert.equal(await page.inputValue("#documents"), text);
  assert.equal(await page.getAttribute("#tab-documents", "aria-selected"), "true");
  await page.click("#tab-word");
  await shows(page, "Nearest to “hot-chocolate”");
  await page.click("#tab-documents");
  await shows(page, `Documents near “${text}”`);
});

test("unknown words are said; a text of nothing else finds nothing", async () => {
  const page = await open(hash({ documents: "a qqqq frog, qqqz" }), { failing: /404|422/ });
  await shows(page, "Documents near “a qqqq frog, qqqz”");
  assert.equal((await notes(page))[0], "Not in the model: qqqq, qqqz.");
  await goTo(page, hash({ documents: "qqqq" }));
  assert.match(await page.locator("#notice").textContent(), /^Unknown wordThe model does not have qqqq\./);
  assert.equal(await page.locator("#found").isVisible(), false);
  await goTo(page, hash({ documents: "\u0085" }));
  assert.match(await page.locator("#notice").textContent(), /`text` must be/);
  await goTo(page, hash({ documents: "frog", filter: "category =" }));
  assert.match(await page.locator("#notice h2").textContent(), /The filter can't be used/);
  await page.fill("#documents", " ");
  await page.click("button.go");
  assert.match(await page.locator("#missing").textContent(), /^Type a text first/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "documents");
});

test("a suggestion takes the place of an unknown word in the text", async () => {
  const page = await open("#tab=documents", { failing: /404/ });
  const unknown = [{ word: "frogg", suggestions: ["frog"] }];
  await page.route("**/nearest", (route) => {
    if (!route.request().postDataJSON().text.includes("frogg")) return route.continue();
    return route.fulfill({ status: 404, contentType: "application/problem+json", body: JSON.stringify({ title: "Unknown word", code: "unknown_word", unknown }) });
  });
  await goTo(page, hash({ documents: "a frogg, frogg", k: 10 }));
  await page.locator("#notice .chip", { hasText: "frog" }).click();
  await shows(page, "Documents near “a frog, frog”");
  assert.deepEqual(parameters(page), { documents: "a frog, frog", k: "10" });
});

test("tokens that are unknown and texts that are cut are said", async () => {
  const page = await open("#tab=documents");
  let tokens = { count: 512, unknown: 2, truncated: true };
  await page.route("**/nearest", async (route) => {
    const response = await route.fetch();
    const { skipped, ...answer } = await response.json();
    await route.fulfill({ response, json: { ...answer, tokens } });
  });
  await goTo(page, hash({ documents: "frog" }));
  assert.deepEqual((await notes(page)).slice(0, -1), [
    "2 of the text's tokens are not in the model.", "The text is too long for this model. Only its first 512 tokens were read.",
  ]);
  tokens = { count: 1, unknown: 1, truncated: false };
  await goTo(page, hash({ documents: "toad" }));
  assert.deepEqual((await notes(page)).slice(0, -1), ["1 of the text's tokens is not in the model."]);
});

test("a model without documents: one message, with the two commands", async () => {
  const page = await open("#model=words");
  assert.equal(await page.locator("#no-documents").isVisible(), false);
  await page.click("#tab-documents");
  const commands = page.locator("#no-documents pre");
  assert.match(await commands.textContent(), /^kindred prepare FILE --encoder DIR .*--keep-text --out DOCS\nkindred serve --model DOCS$/);
  await page.fill("#documents", "frog");
  await page.keyboard.press("Enter");
  await becomes(() => page.evaluate(() => document.activeElement.textContent), "This model has no documents");
  await settled(page);
  assert.equal(await page.locator("#notice").textContent(), "");
  assert.equal(await page.locator("#found").isVisible(), false);
  // Another model has some.
  await page.selectOption("#model", "things");
  await shows(page, "Documents near “frog”");
  assert.equal(await commands.isVisible(), false);
  const other = await open("#documents=frog&model=words");
  await other.locator("#no-documents").waitFor();
  assert.equal(await other.locator("#found").isVisible(), false);
});

test("texts that are code are only texts", async () => {
  const page = await open(hash({ documents: "<b>bread</b> <script>alert(1)</script> water", model: "notes" }));
  await shows(page, "Documents near “<b>bread</b> <script>alert(1)</script> …”");
  const snippet = lines(page).first().locator(".snippet");
  assert.equal(await snippet.textContent(), NOTES[1].body);
  assert.deepEqual(await snippet.locator("mark").allTextContents(), ["Bread", "alert", "1", "water"]);
  assert.equal((await keys(page))[0], "<b>code</b>");
  assert.equal(await page.locator("#answer :is(img, script, b)").count(), 0);
});

test("of two texts, the one that was asked last is shown", async () => {
  const page = await open("#tab=documents");
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/nearest", async (route) => {
    if (route.request().postDataJSON().text === "slow frog") await released;
    await route.continue().catch(() => {}); // It was given up.
  });
  const asked = page.waitForRequest("**/nearest");
  await page.evaluate(() => (location.hash = "documents=slow+frog"));
  await asked;
  await becomes(() => page.locator("#status").textContent(), "Waiting for the answer …");
  await page.evaluate(() => (location.hash = "documents=good+frog"));
  await shows(page, "Documents near “good frog”");
  release();
  await page.waitForTimeout(300);
  assert.equal(await page.locator("#answer-title").textContent(), "Documents near “good frog”");
});

test("keyboard only: the tab, a text of two lines, an attribute", async () => {
  const page = await open();
  const question = { kind: "documents", left: 4, lines: ["warm drink", "cold"], title: "Documents near “warm drink\ncold”", hasExamples: false };
  const { focus, tabTo } = await typeTwoLines(page, question);
  await tabTo("category food", 20);
  await page.keyboard.press("Enter");
  await becomes(() => page.inputValue("#filter"), "category = food");
  await settled(page);
  assert.equal(await focus(), "answer-title");
  await page.keyboard.press("/");
  assert.equal(await focus(), "documents");
});

test("roles and names", async () => {
  const page = await open("#documents=frog");
  await shows(page, "Documents near “frog”");
  for (const [role, name] of [["tab", "Documents"], ["textbox", "Text"], ["button", "Find"], ["combobox", "Documents"], ["combobox", /^Filter: only\s+documents whose/], ["link", "category animals"]]) {
    assert.ok((await page.getByRole(role, { name, exact: true }).count()) > 0, `${role} ${name}`);
  }
});

const asked = hash({ documents: "a bird that flies at night and qqqq", filter: "category = animals" });

test("1,280 px: axe-core finds nothing, in light and dark", async () => {
  const page = await open(asked, { viewport: { width: 1280, height: 900 } });
  await lines(page).first().waitFor();
  await inBoth(page, async (colours) => {
    assert.deepEqual(await findings(page, colours === "dark" ? OF_COLOURS : null), [], colours);
    await take(page, `documents-1280-${colours}`);
  });
});

test("390 px and less: nothing is wider than the window, and fingers hit the links", async () => {
  const [height, phone] = [740, { deviceScaleFactor: 2, isMobile: true, hasTouch: true }];
  const page = await open(asked, { ...phone, viewport: { width: 390, height } });
  await lines(page).first().waitFor();
  assert.deepEqual(await findings(page, OF_WIDTHS), []);
  await inBoth(page, (colours) => take(page, `documents-390-${colours}`));
  for (const width of [360, 390]) {
    await page.setViewportSize({ width, height });
    await becomes(() => wide(page, width), { document: width, elements: [] });
  }
  const heights = await page.locator("#answer a.chip").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
  assert.ok(heights.length > 0 && Math.min(...heights) >= 24, `${heights}`);
  await goTo(page, hash({ documents: "<b>bread</b>", model: "notes" }));
  await becomes(() => wide(page, 390), { document: 390, elements: [] });
});
