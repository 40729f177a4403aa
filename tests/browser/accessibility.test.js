/** Screen readers: names, roles and live regions. Every view is held against axe-core in views.test.js. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { findings, OF_COLOURS } from "./support/axe.js";
import { becomes, explorer, listed, shows } from "./support/explorer.js";

const { open } = await explorer();

test("axe-core would find something", async () => {
  const page = await open("#word=ocean&k=10");
  await page.evaluate(() => {
    document.querySelector("label[for=word]").remove();
    document.querySelector("#word").removeAttribute("placeholder");
  });
  assert.ok((await findings(page)).some((finding) => /label/.test(finding)));
  await page.evaluate(() => document.documentElement.style.setProperty("--soft", "#aaaaaa"));
  assert.ok((await findings(page, OF_COLOURS)).some((finding) => /color-contrast/.test(finding)));
});

test("fields, lists and pictures have names", async () => {
  const page = await open("#word=ocean&k=10");
  const [first] = await listed(page);
  for (const [role, name] of [
    ["heading", "Which words are close in meaning?"], ["tab", "Analogy"], ["combobox", "Word"], ["combobox", "Neighbours"],
    ["checkbox", "Merge words that differ only in case"], ["button", "Find"], ["region", "Nearest to “ocean”"], ["region", "Map"],
    ["link", first], ["button", "Zoom in"], ["button", "Theme: system"], ["button", "Copy as curl"], ["link", "API"],
    ["tablist", "Kind of query"], ["group", "Map of 11 words"], ["img", /^Pairwise similarities of 11 words/],
  ]) {
    assert.ok((await page.getByRole(role, { name, exact: true }).count()) > 0, `${role} ${name}`);
  }
});

test("the combobox says whether it is open, and which word is active", async () => {
  const page = await open();
  const field = page.locator("#word");
  assert.equal(await field.getAttribute("aria-expanded"), "false");
  // At once: letter by letter, a list that arrives late takes the choice back.
  await field.fill("oce");
  await becomes(() => field.getAttribute("aria-expanded"), "true");
  assert.equal(await field.getAttribute("aria-activedescendant"), null);
  await page.keyboard.press("ArrowDown");
  const active = await field.getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${active}`).getAttribute("aria-selected"), "true");
  assert.equal(await page.locator(`#${active}`).getAttribute("role"), "option");
  await page.keyboard.press("Escape");
  assert.equal(await field.getAttribute("aria-expanded"), "false");
  assert.equal(await field.getAttribute("aria-activedescendant"), null);
});

test("live regions tell answers and problems", async () => {
  const page = await open("#word=ocean", { failing: /404/ });
  const status = page.getByRole("status").first();
  await becomes(async () => /^20 neighbours of ocean: /.test(await status.textContent()), true);
  await page.click("#answer li a >> nth=0");
  await becomes(async () => /^20 neighbours of (?!ocean:)/.test(await status.textContent()), true);
  await page.evaluate(() => (location.hash = "analogy=king+-+man+%2B+woman"));
  await shows(page, "king - man + woman ≈");
  assert.match(await status.textContent(), /^king - man \+ woman is nearest to queen, 0\.\d\d$/);
  await page.evaluate(() => (location.hash = "word=oceann"));
  await becomes(async () => /Unknown word/.test(await page.getByRole("alert").textContent()), true);
  assert.equal(await status.textContent(), "");
  // The grid's pair is a live region, too.
  await page.evaluate(() => (location.hash = "word=tree"));
  await shows(page, "Nearest to “tree”");
  await page.locator("svg.heat").focus();
  const before = await page.locator("output#pair").textContent();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.locator("output#pair").textContent(), before);
});
