/** What comes late, or not at all, and what is changed meanwhile. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, settled, shows } from "./support/explorer.js";

const { open } = await explorer();

const go = (page, hash) => page.evaluate((hash) => (location.hash = hash), hash);

test("no old picture stands beside a new answer", async () => {
  const page = await open("#word=ocean");
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/similarity", async (route) => {
    await released;
    await route.continue();
  });
  await go(page, "word=piano");
  await becomes(() => page.locator("#answer-title").textContent(), "Nearest to “piano”");
  for (const id of ["map", "heat", "map-legend", "heat-legend"]) assert.equal(await page.locator(`#${id}`).isVisible(), false, id);
  release();
  await becomes(() => page.locator("#map .asked text").textContent(), "piano");
  assert.equal(await page.locator("#map").isVisible(), true);
});

test("an answer is shown without its pictures where they fail", async () => {
  const page = await open("", { failing: /500/ });
  await page.route("**/similarity", (route) =>
    route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ title: "x", detail: "out of order" }) }),
  );
  await go(page, "word=piano");
  await shows(page, "Nearest to “piano”");
  await becomes(() => page.locator("#map").textContent(), "Can't draw this: out of order.");
  assert.equal(await page.locator("#answer li").count(), 20);
  assert.equal(await page.locator("#notice").textContent(), "");
});

test("an answer that comes too late changes nothing", async () => {
  const page = await open("#word=ocean");
  await page.route("**/nearest?word=tree*", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 700));
    await route.continue().catch(() => {}); // It was given up.
  });
  await go(page, "word=tree");
  await go(page, "word=piano");
  await shows(page, "Nearest to “piano”");
  await page.waitForTimeout(1000);
  assert.equal(await page.locator("#answer-title").textContent(), "Nearest to “piano”");
  assert.equal(await page.inputValue("#word"), "piano");
});

test("what is typed while a question is asked again stays", async () => {
  const page = await open("#word=ocean", { failing: /429/ });
  let refused = 0;
  await page.route("**/nearest?word=tree*", (route) => {
    refused += 1;
    if (refused > 1) return route.continue();
    const problem = JSON.stringify({ title: "Too many requests", detail: "the queue is full", status: 429 });
    return route.fulfill({ status: 429, headers: { "Retry-After": "1" }, contentType: "application/problem+json", body: problem });
  });
  await go(page, "word=tree");
  await page.locator("#notice h2").waitFor();
  await page.fill("#word", "half a wor");
  await shows(page, "Nearest to “tree”");
  assert.equal(await page.inputValue("#word"), "half a wor");
});

test("a refused question is not asked again once another one is asked", async () => {
  const page = await open("#word=ocean", { failing: /429/ });
  let asked = 0;
  await page.route("**/nearest?word=tree*", (route) => {
    asked += 1;
    const problem = JSON.stringify({ title: "Too many requests", detail: "the queue is full", status: 429 });
    return route.fulfill({ status: 429, headers: { "Retry-After": "1" }, contentType: "application/problem+json", body: problem });
  });
  await go(page, "word=tree");
  await page.locator("#notice h2").waitFor();
  await go(page, "word=piano");
  await shows(page, "Nearest to “piano”");
  await page.waitForTimeout(1500);
  assert.equal(asked, 1);
});

test("a text stays a text when an option changes", async () => {
  const page = await open("#text=the+quick+fox");
  await page.selectOption("#k", "10");
  await becomes(() => page.locator("#answer li").count(), 10);
  assert.equal(new URL(page.url()).hash, "#text=the+quick+fox&k=10");
});

test("options hold for what is on the screen, and for all tabs", async () => {
  const page = await open();
  await page.selectOption("#k", "40");
  await becomes(() => page.locator("#answer li").count(), 40);
  await go(page, "word=piano");
  await shows(page, "Nearest to “piano”");
  await page.click("#tab-compare");
  await page.selectOption("#k", "10");
  await becomes(() => new URL(page.url()).hash, "#tab=compare&k=10");
  await settled(page);
  assert.equal(await page.locator("#found").isVisible(), false);
  await page.click("#tab-word");
  await shows(page, "Nearest to “piano”");
  assert.equal(await page.locator("#answer li").count(), 10);
  assert.equal(new URL(page.url()).hash, "#word=piano&k=10");
});

test("who waits is told so, for the first answer and for all others, until it is there", async () => {
  let release;
  let released = new Promise((resolve) => (release = resolve));
  const hold = async (route) => (await released, route.continue());
  const page = await open("", { before: (page) => page.route("**/nearest?*", hold), waits: false });
  const status = page.locator("#status");
  const bar = () => page.evaluate(() => getComputedStyle(document.body, "::before").position);
  await becomes(() => status.textContent(), "Waiting for the answer …");
  assert.equal(await bar(), "fixed");
  release();
  await shows(page, "For example: Nearest to “ocean”");
  assert.match(await status.textContent(), /^20 neighbours of ocean/);
  assert.notEqual(await bar(), "fixed");

  released = new Promise((resolve) => (release = resolve));
  await go(page, "word=piano");
  await becomes(() => status.textContent(), "Waiting for the answer …");
  assert.equal(await page.locator("#found").getAttribute("aria-busy"), "true");
  // The last answer is there to read until then.
  assert.equal(await page.locator("#answer-title").textContent(), "For example: Nearest to “ocean”");
  release();
  await shows(page, "Nearest to “piano”");
  assert.match(await status.textContent(), /^20 neighbours of piano/);
  assert.equal(await page.locator("#found").getAttribute("aria-busy"), null);
});

test("a map that is on its way says so, and the answer is not called late", async () => {
  const page = await open("#word=ocean");
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/similarity", async (route) => (await released, route.continue()));
  await go(page, "word=piano");
  const said = () => page.evaluate(() => getComputedStyle(document.querySelector("#map-card"), "::after").content);
  await becomes(said, '"Loading …"');
  assert.match(await page.locator("#status").textContent(), /^20 neighbours of piano/);
  release();
  await settled(page);
  assert.equal(await said(), "none");
});

test("after an error the title is no other question's", async () => {
  const page = await open("#word=ocean", { failing: /404/ });
  await go(page, "word=oceann");
  await page.locator("#notice h2").waitFor();
  assert.equal(await page.title(), "Kindred");
});

test("two words of more neighbours than one request takes pairs are compared all the same", async () => {
  const page = await open("#compare=coffee&with=tea&k=1000");
  await shows(page, "“coffee” and “tea”");
  assert.ok((await page.locator("#answer li").count()) > 600);
});
