/** Models with several heads, and with none. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { becomes, explorer, settled, shows } from "./support/explorer.js";
import { kindred, prepare, temporaryFolder } from "./support/service.js";

const data = new URL("../../examples/requests.tsv", import.meta.url).pathname;
const words = [...new Set(readFileSync(data, "utf8").toLowerCase().match(/[a-z]+/g))];
const model = prepare(words.map((word, row) => [word, [1, 2, 3, 4, 5, 6, 7, 8].map((n) => Math.sin(n * (row + 1) * 12.9898).toFixed(3))]));
const bare = prepare({ yes: [1, 0], no: [0, 1] });
const folder = temporaryFolder();
const train = (name, ...more) => {
  const path = join(folder, name);
  const size = ["--epochs", "10", "--patience", "10", "--channels", "10", "--learning-rate", "0.01"];
  kindred("train", "classifier", "--model", model, "--data", data, "--dev", data, "--out", path, ...size, ...more);
  return path;
};
const expander = (name, terms) => {
  const path = join(folder, name);
  kindred("train", "expander", "--model", model, "--out", path, "--terms", terms);
  return path;
};
const { service, open } = await explorer([
  "--keep-tables", "false", "--model", `shop=${model}`, "--model", `bare=${bare}`,
  "--head", train("requests"), "--head", `short=${train("short", "--limit", "2")}`,
  "--head", expander("near", "3"), "--head", expander("wide", "20"),
]);

const parameters = (page) => new URLSearchParams(new URL(page.url()).hash.slice(1));
const text = "where is my package";

test("of several heads one is chosen, and the address names it", async () => {
  const page = await open();
  await page.click("#tab-classify");
  await becomes(() => page.locator("#head option").allTextContents(), ["requests", "short"]);
  assert.equal(await page.locator("#head").isVisible(), true);
  assert.equal(await page.locator("#no-head").isVisible(), false);
  // A head is chosen before there is a text.
  await page.selectOption("#head", "short");
  await settled(page);
  assert.deepEqual([...parameters(page)], [["tab", "classify"]]);
  await page.fill("#classify", text);
  await page.click("button.go");
  await shows(page, `Labels of “${text}”`);
  assert.equal(parameters(page).get("head"), "short");
  assert.match(await page.locator("#answer .note").first().textContent(), /Only its first 2 tokens/);
  await page.selectOption("#head", "requests");
  await becomes(() => page.locator("#answer .note").count(), 2);
  await settled(page);
  assert.equal(parameters(page).get("head"), "requests");
  const { labels } = await service.post("classify", { text, head: "requests" });
  assert.deepEqual(await page.locator("#answer li a").allTextContents(), labels.map(({ label }) => label));
  // Its labels are none that the examples are for.
  assert.equal(await page.locator("#text-examples .chip").count(), 0);
  await page.locator("#answer li a").last().click();
  await becomes(() => page.locator("#answer [aria-current]").textContent(), labels.at(-1).label);
  const other = await open(new URL(page.url()).hash);
  await becomes(() => other.locator("#answer [aria-current]").textContent(), labels.at(-1).label);
  await page.goBack();
  await page.goBack();
  await becomes(() => page.inputValue("#head"), "short");
});

test("an address that names no head asks the first", async () => {
  const page = await open(`#${new URLSearchParams({ classify: text })}`);
  await shows(page, `Labels of “${text}”`);
  assert.equal(await page.inputValue("#head"), "requests");
  assert.match(await page.locator("#answer").textContent(), /By the head requests\./);
});

test("a head that is not served is said to be none, and another one can be chosen", async () => {
  const page = await open(`#${new URLSearchParams({ classify: text, head: "gone" })}`, { failing: /404/ });
  await becomes(async () => (await page.locator("#notice").textContent()).includes("there is no head `gone`; heads: requests, short"), true);
  await settled(page);
  await page.selectOption("#head", "short");
  await shows(page, `Labels of “${text}”`);
});

/** Asks a model that has no such head: the page has said all already, and says nothing twice. Returns the service's words. */
async function refused(page, kind) {
  await page.fill(`#${kind}`, "yes");
  await page.keyboard.press("Enter");
  await becomes(() => page.evaluate(() => document.activeElement.textContent), `This model has no ${kind === "expand" ? "expander" : "classifier"}`);
  await settled(page);
  assert.equal(await page.locator("#notice").textContent(), "");
  assert.equal(await page.locator("#found").isVisible(), false);
  return (await service.post(`models/bare/${kind}`, { text: "yes" })).detail;
}

test("a model without a head: one message, with the two commands", async () => {
  const page = await open("#model=bare", { failing: /404/ });
  assert.equal(await page.locator("#no-head").isVisible(), false);
  await page.click("#tab-classify");
  const commands = page.locator("#no-head pre:visible");
  await commands.waitFor();
  assert.match(await commands.textContent(), /^kindred train classifier --model DIR --data FILE --out HEAD\nkindred serve --model DIR --head HEAD$/);
  assert.equal(await page.locator("#head").isVisible(), false);
  const detail = await refused(page, "classify");
  // The service's message names the commands that the page shows.
  for (const command of (await commands.textContent()).split("\n")) assert.ok(detail.includes(command), detail);
  await page.click("#tab-word");
  assert.equal(await commands.isVisible(), false);
});

test("of several expanders one is chosen, and classifiers are not among them", async () => {
  const page = await open();
  await page.click("#tab-classify");
  await becomes(() => page.locator("#head option").allTextContents(), ["requests", "short"]);
  await page.selectOption("#head", "short");
  await settled(page);
  // The classifier that is chosen there is not asked here, even before the expanders are known.
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/heads", async (route) => (await released, route.continue()));
  await page.click("#tab-expand");
  await page.fill("#expand", text);
  await page.keyboard.press("Enter");
  release();
  await shows(page, `Terms of “${text}”`);
  assert.deepEqual(await page.locator("#head option").allTextContents(), ["near", "wide"]);
  assert.deepEqual([...parameters(page)], [["expand", text]]);
  assert.match(await page.locator("#answer").textContent(), /By the head near,/);
  const termsOf = async (head) => (await service.post("expand", { text, head, top: 20 })).terms.map(({ term }) => term);
  const shown = () => page.locator("#answer li a").allTextContents();
  assert.deepEqual(await shown(), await termsOf("near"));
  await page.selectOption("#head", "wide");
  await becomes(shown, await termsOf("wide"));
  assert.notDeepEqual(await termsOf("near"), await termsOf("wide"));
  assert.equal(parameters(page).get("head"), "wide");
  const other = await open(new URL(page.url()).hash);
  await becomes(() => other.inputValue("#head"), "wide");
  assert.match(await other.locator("#answer").textContent(), /By the head wide,/);
  // The model has not all words of the usual examples, so a word of its own is one.
  const [example, ...rest] = await other.locator("#text-examples .chip").allTextContents();
  assert.deepEqual(rest, []);
  assert.ok(words.includes(example), example);
});

test("a model without an expander: one message, with the two commands", async () => {
  const page = await open("#model=bare", { failing: /404/ });
  await page.click("#tab-expand");
  const commands = page.locator("#no-head pre:visible");
  await commands.waitFor();
  assert.match(await commands.textContent(), /^kindred train expander --model DIR --out HEAD\nkindred serve --model DIR --head HEAD$/);
  const detail = await refused(page, "expand");
  for (const command of (await commands.textContent()).split("\n")) assert.ok(detail.includes(command), detail);
  // The commands for a classifier are others.
  await page.click("#tab-classify");
  await becomes(async () => (await commands.textContent()).includes("train classifier"), true);
});

test("another model has other heads", async () => {
  const page = await open(`#${new URLSearchParams({ classify: text, head: "short", label: "delivery" })}`, { failing: /404/ });
  await shows(page, `Labels of “${text}”`);
  await page.selectOption("#model", "bare");
  await page.locator("#no-head pre:visible").waitFor();
  assert.deepEqual([...parameters(page)], [["classify", text], ["model", "bare"]]);
  await settled(page);
  assert.equal(await page.locator("#notice").textContent(), "");
  assert.equal(await page.locator("#found").isVisible(), false);
  await page.selectOption("#model", "shop");
  await shows(page, `Labels of “${text}”`);
  assert.equal(await page.locator("#no-head").isVisible(), false);
});

test("a list of heads that comes late is not shown for another model", async () => {
  const page = await open("#model=bare", { failing: /404/ });
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/models/bare/heads", async (route) => {
    await released;
    await route.continue();
  });
  // Otherwise the next model may be chosen before this one's heads are asked for.
  const asked = page.waitForRequest("**/models/bare/heads");
  await page.click("#tab-classify");
  await asked;
  await page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams({ classify: text })}`);
  await shows(page, `Labels of “${text}”`);
  const came = page.waitForResponse("**/models/bare/heads");
  release();
  await came;
  await page.waitForTimeout(200);
  assert.equal(await page.locator("#head option").count(), 2);
  assert.equal(await page.locator("#no-head").isVisible(), false);
});
