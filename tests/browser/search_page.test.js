/** The example of a search page (examples/search): served by a file server, it calls a service of another origin. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, test } from "node:test";

import { findings, OF_COLOURS, OF_WIDTHS } from "./support/axe.js";
import { THINGS, prepareDocuments, prepareWords } from "./support/documents.js";
import { becomes, explorer } from "./support/explorer.js";
import { serve } from "./support/service.js";
import { inBoth, take, wide } from "./support/views.js";

const TYPES = { "/": ["index.html", "text/html"], "/search.js": ["search.js", "text/javascript"] };
const files = createServer((request, response) => {
  const [name, type] = TYPES[new URL(request.url, "http://localhost").pathname] ?? [];
  if (!name) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": type }).end(readFileSync(new URL(`../../examples/search/${name}`, import.meta.url)));
});
await new Promise((resolve) => files.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${files.address().port}`;

const { open } = await explorer(null);
const things = prepareDocuments(THINGS, prepareWords());
const start = (port) => serve(["--keep-tables", "false", "--model", `things=${things}`, "--cors-origins", origin], port);
let service = await start();
after(() => (files.close(), service.stop()));

const page = (options = {}) => open(`?service=${service.url}`, { at: `${origin}/`, calls: service.url, ...options });
const titles = (page) => page.locator("#found h2").evaluateAll((all) => all.map((one) => one.firstChild.textContent.trim()));
const message = (page) => page.locator("#message").textContent();

async function search(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
}

test("a text finds documents with their titles, snippets and scores", async () => {
  const shown = await page();
  await search(shown, "a warm drink for a cold evening");
  const { neighbors } = await service.post("nearest", { text: "a warm drink for a cold evening", k: 10, with_attributes: true });
  await becomes(() => titles(shown), neighbors.map(({ attributes }) => attributes.title));
  assert.equal(neighbors[0].word, "hot-chocolate");
  const first = shown.locator("#found li").first();
  assert.equal(await first.locator("small").textContent(), `${neighbors[0].score.toFixed(3)} · food`);
  assert.equal(await first.locator("p").textContent(), neighbors[0].attributes.text);
  assert.equal(await message(shown), "");
  await search(shown, "see the stars");
  await becomes(async () => (await titles(shown))[0], "Telescope");
  assert.match(await first.locator("small").textContent(), /· inventions, 1608$/);
  const longest = await shown.locator("#found p").evaluateAll((all) => Math.max(...all.map((one) => one.textContent.length)));
  assert.ok(longest <= 162, `${longest}`);
});

test("a category is a filter", async () => {
  const shown = await page();
  await becomes(() => shown.locator("#category option").count(), 8);
  await search(shown, "a warm drink for a cold evening");
  await becomes(async () => (await titles(shown)).length, 10);
  await shown.selectOption("#category", "plants");
  await becomes(() => shown.locator("#found small").evaluateAll((all) => all.every((one) => one.textContent.endsWith("· plants"))), true);
  assert.equal((await titles(shown)).length, 10);
});

test("unknown words are said, and those of which nothing is known find nothing", async () => {
  const shown = await page({ failing: /404/ });
  await search(shown, "a qqqq frog");
  await becomes(() => message(shown), "Not known, and left out: qqqq.");
  assert.equal((await titles(shown)).length, 10);
  await search(shown, "qqqq zzzzq");
  await becomes(() => message(shown), "No document can be found by these words: qqqq, zzzzq.");
  assert.deepEqual(await titles(shown), []);
});

test("while the service is away the page says so, and then goes on", async () => {
  const shown = await page({ failing: /ERR_CONNECTION/ });
  await becomes(() => shown.locator("#category option").count(), 8);
  const { port, url } = service;
  await service.stop();
  await search(shown, "frog");
  await becomes(() => message(shown), `The search at ${url} does not respond. Please try again later.`);
  service = await start(port);
  await search(shown, "frog");
  await becomes(async () => (await titles(shown)).includes("Frog"), true);
  assert.equal(await message(shown), "");
});

test("of two searches the last one is shown, and texts are never code", async () => {
  const shown = await page({ failing: /404/ });
  await shown.route("**/nearest", async (route) => {
    if (route.request().postDataJSON()?.text === "slow frog") await new Promise((resolve) => setTimeout(resolve, 400));
    await route.continue();
  });
  await search(shown, "slow frog");
  await search(shown, "<b>qqqq</b>");
  await becomes(async () => (await message(shown)).includes("qqqq"), true);
  const said = await message(shown);
  await shown.waitForTimeout(800);
  assert.equal(await message(shown), said);
  assert.equal(await shown.locator("b").count(), 0);
});

test("axe-core finds nothing, and a phone shows all", async () => {
  const shown = await page({ viewport: { width: 1280, height: 900 } });
  await search(shown, "a warm drink for a cold evening");
  await becomes(async () => (await titles(shown)).length, 10);
  await inBoth(shown, async (colours) => {
    assert.deepEqual(await findings(shown, colours === "dark" ? OF_COLOURS : null), [], colours);
    await take(shown, `search-page-1280-${colours}`);
  });
  await shown.setViewportSize({ width: 390, height: 740 });
  assert.deepEqual(await findings(shown, OF_WIDTHS), []);
  await take(shown, "search-page-390-light");
  await becomes(() => wide(shown, 390), { document: 390, elements: [] });
});
