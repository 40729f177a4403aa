/** The filter: completion, chips, the number of words that pass, attributes of neighbours, faults; and no trace of it without attributes. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { findings, OF_COLOURS } from "./support/axe.js";
import { becomes, explorer, goTo, listed, settled, shows } from "./support/explorer.js";
import { prepare } from "./support/service.js";

const PRODUCTS = [
  ["sneaker", [9, 1, 2], { category: "shoes", price: 79.5, tags: ["running", "red"], on_sale: true }],
  ["trail runner", [9, 0, 4], { category: "shoes", price: 120, tags: ["running", "outdoor"], on_sale: false }],
  ["loafer", [1, 8, 1], { category: "shoes", price: 95, tags: [], on_sale: true }],
  ["rain jacket", [5, 1, 9], { category: "winter coats", price: 110, tags: ["outdoor"], on_sale: false }],
  ["parka", [3, 2, 9], { category: "winter coats", price: 240, tags: ["outdoor"] }],
  ["backpack", [6, 1, 6], { category: "bags", price: 89, on_sale: true }],
  ["gift card", [3, 3, 3], {}],
];
const rows = PRODUCTS.map(([word, row]) => [word, row]);
const products = prepare(rows, undefined, PRODUCTS.map(([, , attributes]) => attributes));
const plain = prepare({ yes: [1, 0], no: [-1, 0.1] });
const { service, open } = await explorer(["--keep-tables", "false", "--model", `products=${products}`, "--model", `plain=${plain}`]);

const folder = process.env.SCREENSHOTS_DIR ?? "../../target/screenshots";
mkdirSync(folder, { recursive: true });

const hash = (page) => new URLSearchParams(new URL(page.url()).hash.slice(1));
const chips = (page) => page.locator("#tests .chip").evaluateAll((all) => all.map(({ title }) => title));
const suggested = (page) =>
  page.locator("#filter-words").evaluate((list) => (list.hidden ? null : [...list.children].map((option) => option.dataset.word)));

/** Types, waits for these suggestions, and takes the first. */
async function take(page, typed, wanted) {
  await page.keyboard.type(typed);
  await becomes(() => suggested(page), wanted);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
}

test("a filter is written by keys alone, and the answer is the service's own", async () => {
  const page = await open("#word=sneaker");
  assert.deepEqual(await listed(page), ["trail runner", "backpack", "gift card", "rain jacket", "parka", "loafer"]);
  await page.getByRole("combobox", { name: /^Filter/ }).focus();
  await take(page, "ca", ["category"]);
  // What may follow is suggested at once.
  await becomes(async () => (await suggested(page))?.[0], "=");
  await page.keyboard.type("= ");
  await becomes(() => suggested(page), ["shoes", '"winter coats"', "bags"]);
  await take(page, "w", ['"winter coats"']);
  await take(page, "a", ["AND"]);
  await page.keyboard.type("price > 100");
  await page.keyboard.press("Enter");
  const filter = 'category = "winter coats" AND price > 100';
  await becomes(() => hash(page).get("filter"), filter);
  await settled(page);
  const { neighbors } = await service.get("models/products/nearest", { word: "sneaker", filter });
  assert.deepEqual(await listed(page), neighbors.map(({ word }) => word));
  assert.deepEqual(await listed(page), ["rain jacket", "parka"]);
  assert.deepEqual(await chips(page), ['category = "winter coats"', "price > 100"]);
  assert.equal(await page.locator("#passing").textContent(), "2 of 7 words pass");
  const lines = await page.locator("#answer .attributes").allTextContents();
  assert.deepEqual(lines, [
    "category winter coats · price 110 · tags outdoor · on_sale false",
    "category winter coats · price 240 · tags outdoor",
  ]);
  assert.ok((await page.locator("#curl").textContent()).includes("with_attributes=true"));
  // The address has it all, and links keep it.
  const other = await open(new URL(page.url()).hash);
  assert.deepEqual(await listed(other), ["rain jacket", "parka"]);
  assert.equal(await other.inputValue("#filter"), filter);
  await other.click("#answer li a >> nth=0");
  await shows(other, "Nearest to “rain jacket”");
  assert.equal(hash(other).get("filter"), filter);
});

test("a chip takes its test out, and the last one the filter", async () => {
  const page = await open("#word=sneaker&filter=on_sale+%3D+true+AND+price+%3C+90");
  assert.deepEqual(await listed(page), ["backpack"]);
  await page.getByRole("button", { name: "Remove price < 90" }).click();
  await becomes(() => hash(page).get("filter"), "on_sale = true");
  await settled(page);
  assert.deepEqual(await listed(page), ["backpack", "loafer"]);
  assert.equal(await page.evaluate(() => document.activeElement.id), "filter");
  await page.locator("#tests .chip").focus();
  await page.keyboard.press("Enter");
  await becomes(() => new URL(page.url()).hash, "#word=sneaker");
  await settled(page);
  assert.deepEqual(await chips(page), []);
  assert.equal(await page.locator("#passing").textContent(), "");
});

test("analogies and comparisons have it, too; nothing may pass", async () => {
  const page = await open("#analogy=sneaker+%2B+parka&filter=category+EXISTS");
  assert.ok(!(await listed(page)).includes("gift card"));
  assert.match(await page.locator("#answer .attributes").first().textContent(), /^category /);
  await goTo(page, "#compare=sneaker&with=parka&filter=category+%3D+bags");
  assert.deepEqual(await listed(page), ["backpack"]);
  await goTo(page, "#word=sneaker&filter=price+%3E+1000");
  assert.equal(await page.locator("#passing").textContent(), "0 of 7 words pass");
  assert.equal(await page.locator("#answer").textContent(), "No word passes these filters.");
  await goTo(page, "#odd=sneaker+parka+loafer&filter=category+EXISTS");
  assert.equal(await page.locator("#filter").isVisible(), false);
});

test("a fault is shown where it is", async () => {
  const page = await open("#word=sneaker&filter=on_sale+%3D+true+AND+prize+%3C+90", { failing: /422/ });
  const notice = page.locator("#notice");
  assert.equal(await notice.locator(".pointed").textContent(), `on_sale = true AND prize < 90\n${" ".repeat(19)}^`);
  assert.match(await notice.textContent(), /did you mean `price`/);
  assert.equal(await page.locator("#filter").getAttribute("aria-invalid"), "true");
  await page.fill("#filter", "price < 90");
  await page.keyboard.press("Enter");
  await becomes(() => listed(page), ["backpack"]);
  assert.equal(await page.locator("#filter").getAttribute("aria-invalid"), null);
  await goTo(page, "#compare=sneaker&with=parka&filter=price+%3C+few");
  assert.match(await notice.locator(".pointed").textContent(), /\n {8}\^$/);
});

test("a model without attributes has no field, and a filter in the address is not lost", async () => {
  const page = await open("#word=yes&model=plain", { failing: /404/ });
  assert.equal(await page.locator("#filter").isVisible(), false);
  assert.ok(!(await page.locator("#curl").textContent()).includes("attributes"));
  await goTo(page, "#word=yes&model=plain&filter=key+%3D+yes");
  assert.equal(await page.locator("#filter").isVisible(), true);
  assert.equal(await page.locator("#passing").textContent(), "1 of 2 words pass");
  // Another model has other attributes.
  await page.selectOption("#model", "products");
  await becomes(() => hash(page).get("filter"), null);
});

test("axe-core finds nothing on a page with a filter, and a phone has room for it", async () => {
  const page = await open("#word=sneaker&filter=category+IN+%5Bshoes%2C+%22winter+coats%22%5D+AND+price+EXISTS", { viewport: { width: 1280, height: 900 } });
  const picture = (name) => page.screenshot({ path: join(folder, `filter-${name}.png`), fullPage: true, animations: "disabled", scale: "css" });
  assert.deepEqual(await findings(page), []);
  await page.locator("#filter").focus();
  await page.keyboard.press("End");
  await page.keyboard.type(" AND ");
  await becomes(async () => (await suggested(page))?.length, 6);
  await page.keyboard.press("ArrowDown");
  assert.deepEqual(await findings(page), []);
  await picture("1280");
  await page.emulateMedia({ colorScheme: "dark" });
  assert.deepEqual(await findings(page, OF_COLOURS), []);
  await page.setViewportSize({ width: 360, height: 740 });
  await picture("360-dark");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
});
