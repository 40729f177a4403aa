/** Rows are read, added, changed and deleted; tables made, folded and deleted; and who may. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { findings, OF_COLOURS } from "./support/axe.js";
import { becomes, explorer, goTo, listed, settled, shows } from "./support/explorer.js";
import { ODD_WORDS } from "./support/odd_words.js";
import { apiKey, prepare, serve, temporaryFolder } from "./support/service.js";

const PRODUCTS = [
  [
    "sneaker",
    [9, 1, 2],
    {
      category: "shoes",
      price: 79.5,
      tags: ["running", "red"],
      on_sale: true,
      stock: 12,
      since: "2026-03-01T00:00:00Z",
    },
  ],
  [
    "trail runner",
    [9, 0, 4],
    { category: "shoes", price: 120, tags: ["running", "outdoor"], on_sale: false },
  ],
  ["loafer", [1, 8, 1], { category: "shoes", price: 95, tags: [], on_sale: true }],
  [
    "rain jacket",
    [5, 1, 9],
    { category: "winter coats", price: 110, tags: ["outdoor"], on_sale: false },
  ],
  ["parka", [3, 2, 9], { category: "winter coats", price: 240, tags: ["outdoor"] }],
  ["backpack", [6, 1, 6], { category: "bags", price: 89, on_sale: true }],
  ["gift card", [3, 3, 3], {}],
];
const rows = PRODUCTS.map(([word, row]) => [word, row]);
const tables = temporaryFolder();
prepare(
  rows,
  join(tables, "products"),
  PRODUCTS.map(([, , attributes]) => attributes),
);
const plain = prepare({ yes: [1, 0], no: [-1, 0.1] });
const { service, open } = await explorer(["--models-dir", tables, "--model", `plain=${plain}`]);

const folder = process.env.SCREENSHOTS_DIR ?? "../../target/screenshots";
mkdirSync(folder, { recursive: true });

const keys = (page) => page.locator("table.rows tbody th").allTextContents();
const status = (page) => page.locator("#status").textContent();
const button = (page, name) => page.getByRole("button", { name, exact: true });
const title = (page, text) => shows(page, text);

/** Answers the question of the dialog; returns it. */
async function answered(page, name) {
  const dialog = page.getByRole("dialog");
  const asked = await dialog.getByRole("heading").textContent();
  await dialog.getByRole("button", { name, exact: true }).click();
  await settled(page);
  return asked;
}

/** Pictures in light and dark, wide and narrow; axe-core finds nothing, and nothing is too wide. */
async function looks(page, name) {
  for (const [width, height] of [
    [1280, 900],
    [390, 740],
  ]) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(
        await findings(page, colorScheme === "dark" ? OF_COLOURS : null),
        [],
        `${name} ${width} ${colorScheme}`,
      );
      await page.screenshot({
        path: join(folder, `rows-${name}-${width}-${colorScheme}.png`),
        fullPage: true,
        animations: "disabled",
        scale: "css",
      });
    }
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, name);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

test("rows are read, found, added, changed and deleted, and searches see it", async () => {
  const page = await open("#rows=&model=products", { failing: /40[49]|410|422/ });
  await title(page, "Rows of products");
  await looks(page, "list");
  await goTo(page, "#rows=&k=3&model=products");
  assert.deepEqual(await keys(page), ["sneaker", "trail runner", "loafer"]);
  assert.equal(await status(page), "7 rows in all, 3 on this page, position 0");
  const cells = await page
    .locator("table.rows tbody tr")
    .first()
    .locator("td[data-name]")
    .allTextContents();
  assert.deepEqual(cells, ["shoes", "79.5", "running, red", "true", "12", "2026-03-01T00:00:00Z"]);
  const go = (name) => page.getByRole("link", { name, exact: true }).click();
  await go("Next page");
  await becomes(() => keys(page), ["rain jacket", "parka", "backpack"]);
  await go("Next page");
  await becomes(() => keys(page), ["gift card"]);
  await go("Previous page");
  await becomes(() => keys(page), ["rain jacket", "parka", "backpack"]);
  await page.goBack();
  await becomes(() => keys(page), ["gift card"]);
  await go("First page");
  await becomes(() => keys(page), ["sneaker", "trail runner", "loafer"]);

  // A row is added: faults are beside what they are about, and nothing that is typed is lost.
  await go("Add a row");
  await title(page, "New row");
  await page.getByLabel("Vector", { exact: true }).fill("1, 2");
  assert.equal(await page.getByText("2 of 3 numbers").count(), 1);
  await page.getByLabel("stock").fill("many");
  await button(page, "Add").click();
  const faults = () => page.locator(".row .fault:visible").allTextContents();
  assert.deepEqual(await faults(), [
    "Type a key.",
    "A vector of this table has 3 numbers, not 2.",
    "Write an integer, such as 12.",
  ]);
  assert.equal(
    await page.evaluate(
      () => document.activeElement.closest(".field").querySelector("label").textContent,
    ),
    "Key",
  );
  await looks(page, "faults");
  await page.getByLabel("Key", { exact: true }).fill("boots/50% “off” <b>");
  await page.getByLabel("stock").fill("9007199254740993");
  await page.getByLabel("since").fill("soon");
  await page.getByLabel("Or copy the vector").fill("sneaker");
  await button(page, "Copy").click();
  await becomes(() => page.getByLabel("Vector", { exact: true }).inputValue(), "9, 1, 2");
  await page.getByLabel("tags").fill("winter\nwarm, dry");
  await button(page, "Add").click();
  await becomes(async () => /since/.test((await faults())[0]), true);
  // Another tab and back: it is all there.
  await page.click("#tab-analogy");
  await page.click("#tab-rows");
  await title(page, "New row");
  assert.equal(await page.getByLabel("Key", { exact: true }).inputValue(), "boots/50% “off” <b>");
  await page.getByLabel("since").fill("2026-11-01T00:00:00Z");
  await page.getByLabel("since").press("Enter");
  await title(page, "Row “boots/50% “off” <b>”");
  assert.match(await status(page), /^Row added\. Row number 7, position 1$/);
  assert.equal(await page.getByLabel("stock").inputValue(), "9007199254740993");
  await go("Nearest");
  await title(page, "Nearest to “boots/50% “off” <b>”");
  assert.equal((await listed(page))[0], "sneaker");
  assert.ok((await page.locator("#facts").textContent()).includes("Words8"));

  // It is changed: what was not touched stays exactly what it was.
  await page.goBack();
  await title(page, "Row “boots/50% “off” <b>”");
  await looks(page, "row");
  await page.getByLabel("price").fill("49.5");
  await button(page, "Save").click();
  await becomes(async () => (await status(page)).startsWith("Row replaced."), true);
  const text = await (
    await fetch(
      `${service.url}/models/products/rows?key=${encodeURIComponent("boots/50% “off” <b>")}`,
    )
  ).text();
  assert.ok(
    text.includes('"stock":9007199254740993') &&
      text.includes('["winter","warm, dry"]') &&
      text.includes('"price":49.5'),
    text,
  );
  await goTo(page, "#word=sneaker&model=products");
  assert.ok(
    (await page.locator("#answer .attributes").first().textContent()).includes("price 49.5"),
    "no stale answer",
  );

  // A filter; rows are deleted, by choice and by filter, after a question that says how many.
  await goTo(page, "#rows=&k=3&model=products");
  await page.fill("#filter", "on_sale = true OR price = 49.5");
  await page.keyboard.press("Enter");
  await title(page, "Rows of products that pass the filter");
  await becomes(() => page.locator("#passing").textContent(), "4 of 8 words pass");
  assert.deepEqual(await keys(page), ["sneaker", "loafer", "backpack"]);
  await button(page, "Delete selected rows …").click();
  assert.ok(await page.getByText("Select rows first.").isVisible());
  await page.getByLabel("Select loafer").check();
  await button(page, "Delete selected rows …").click();
  await page.screenshot({
    path: join(folder, "rows-dialog.png"),
    animations: "disabled",
    scale: "css",
  });
  assert.equal(await answered(page, "Cancel"), "Delete 1 row?");
  await button(page, "Delete selected rows …").click();
  await answered(page, "Delete");
  await becomes(() => keys(page), ["sneaker", "backpack", "boots/50% “off” <b>"]);
  assert.match(await status(page), /^1 row deleted\. 3 on this page, position 3$/);
  await button(page, "Delete all that pass the filter …").click();
  assert.equal(await answered(page, "Delete"), "Delete all rows that pass the filter: 3 of 7?");
  await becomes(() => page.locator("#answer").getByText("No row passes the filter.").count(), 1);
  await goTo(page, "#word=sneaker&model=products");
  await becomes(() => page.locator("#notice h2").textContent(), "Unknown word");

  // The last row of the last page is deleted.
  await goTo(page, "#rows=&k=3&model=products");
  await go("Next page");
  await becomes(() => keys(page), ["gift card"]);
  await page.getByLabel("Select gift card").check();
  await button(page, "Delete selected rows …").click();
  await answered(page, "Delete");
  await becomes(() => page.locator("#answer").getByText("No row is left here.").count(), 1);
  await go("Previous page");
  await becomes(() => keys(page), ["trail runner", "rain jacket", "parka"]);

  // Pages that are not kept begin again; a key that is not there can be added.
  await goTo(page, "#rows=&after=999-1&model=products");
  assert.deepEqual(await keys(page), ["trail runner", "rain jacket", "parka"]);
  assert.ok(await page.getByText("not kept any more").isVisible());
  await page.fill("#rows", "galoshes");
  await page.keyboard.press("Enter");
  await title(page, "No row “galoshes”");
  await go("Add it");
  await title(page, "New row");
  assert.equal(await page.getByLabel("Key", { exact: true }).inputValue(), "galoshes");
  await button(page, "Cancel").click();
  await title(page, "Rows of products");

  // A model of the settings can only be read.
  await page.selectOption("#model", "plain");
  await title(page, "Rows of plain");
  assert.deepEqual(await keys(page), ["yes", "no"]);
  assert.ok(await page.getByText("can't be changed here").isVisible());
  assert.equal(await page.locator("#answer").getByRole("button").count(), 0);
  await page.getByRole("link", { name: "no", exact: true }).click();
  await title(page, "Row “no”");
  assert.equal(await page.locator(".row-facts").textContent(), "Vector-1, 0.1");
});

test("keys are hostile texts", async () => {
  const long = "k".repeat(1000);
  const odd = [...ODD_WORDS.filter((word) => word.trim() !== ""), "\u202eabc", long];
  await service.post("models", { name: "odd", dim: 2, attributes: { note: "text" } });
  const made = odd.map((key, place) => ({ key, vector: [1, place], attributes: { note: key } }));
  const put = await service.post("models/odd/rows", { rows: made });
  assert.equal(put.inserted, odd.length, put.detail);
  const page = await open("#rows=&k=100&model=odd", { viewport: { width: 390, height: 740 } });
  const titles = await page
    .locator("table.rows tbody th a")
    .evaluateAll((all) => all.map(({ title }) => title));
  assert.deepEqual(titles, odd);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await page.screenshot({
    path: join(folder, "rows-odd.png"),
    fullPage: true,
    animations: "disabled",
    scale: "css",
  });
  for (const key of ["..", "a/b", "a%2Bb", long, "a\u202eb"]) {
    await page.locator("table.rows tbody th a").nth(odd.indexOf(key)).click();
    await title(page, `Row “${key}”`);
    assert.equal(await page.getByLabel("note").inputValue(), key);
    await goTo(page, "#rows=&k=100&model=odd");
  }
  await page.getByLabel("Select all").check();
  await button(page, "Delete selected rows …").click();
  assert.equal(await answered(page, "Delete"), `Delete ${odd.length} rows?`);
  await becomes(() => page.locator("#answer").getByText("This table has no rows yet.").count(), 1);
});

test("on a service without tables one is made, folded and deleted", async () => {
  const empty = await serve(["--models-dir", temporaryFolder()]);
  after(() => empty.stop());
  const page = await open("", { at: `${empty.url}/`, failing: /404|409/ });
  await title(page, "This service has no tables yet");
  await looks(page, "none");
  await page.getByLabel("Name", { exact: true }).fill("things");
  await page.getByLabel("Numbers in a vector").fill("2");
  await page.getByLabel("Name of an attribute").fill("size");
  await page.getByLabel("Its type").selectOption("number");
  await button(page, "Make the table").click();
  await title(page, "Rows of things");
  assert.ok(await page.getByText("This table has no rows yet.").isVisible());
  await looks(page, "no-rows");
  await goTo(page, "");
  await title(page, "Rows of things");
  await page.getByRole("link", { name: "Add a row" }).click();
  await page.getByLabel("Key", { exact: true }).fill("pin");
  await page.getByLabel("Vector", { exact: true }).fill("[1, 0.5]");
  await page.getByLabel("size").fill("3");
  await button(page, "Add").click();
  await title(page, "Row “pin”");
  await goTo(page, "");
  await title(page, "For example: Nearest to “pin”");
  await page.click("#tab-rows");
  await title(page, "Row “pin”");
  await page.getByRole("link", { name: "All rows" }).click();
  await title(page, "Rows of things");
  await page.getByText("Tables", { exact: true }).click();
  await looks(page, "tables");
  await page.getByLabel("Name", { exact: true }).fill("things");
  await page.getByLabel("Numbers in a vector").fill("2");
  await button(page, "Make the table").click();
  await becomes(
    async () => /there is a model `things`/.test(await page.locator("#answer").textContent()),
    true,
  );
  await button(page, "Fold the changes").click();
  await becomes(async () => (await status(page)).startsWith("The changes are folded."), true);
  await page.getByText("Tables", { exact: true }).click();
  await button(page, "Delete this table …").click();
  assert.equal(await answered(page, "Delete the table"), "Delete the table things?");
  await title(page, "This service has no tables yet");
});

test("a key that may not change rows is told which one may", async () => {
  const [reader, writer] = [apiKey(), apiKey("--write")];
  const file = join(temporaryFolder(), "keys");
  writeFileSync(file, `${reader.line}\n${writer.line.replace("reader", "writer")}\n`);
  const own = temporaryFolder();
  prepare({ yes: [1, 0], no: [-1, 0.1] }, join(own, "words"));
  const guarded = await serve(["--models-dir", own, "--api-keys-file", file]);
  after(() => guarded.stop());
  const page = await open("#rows=no", { at: `${guarded.url}/`, failing: /40[13]/ });
  await page.locator("#api-key").fill(reader.key);
  await page.keyboard.press("Enter");
  await title(page, "Row “no”");
  await page.getByLabel("Vector", { exact: true }).fill("-1 0.2");
  await button(page, "Save").click();
  await becomes(
    async () => /kindred api-key NAME --write/.test(await page.locator("#answer").textContent()),
    true,
  );
  assert.equal(await page.getByLabel("Vector", { exact: true }).inputValue(), "-1 0.2");
  await page.locator("#api-key").fill(writer.key);
  await page.keyboard.press("Enter");
  await becomes(async () => (await status(page)).startsWith("Row replaced."), true);
  assert.equal(await page.getByLabel("Vector", { exact: true }).inputValue(), "-1, 0.2");
});
