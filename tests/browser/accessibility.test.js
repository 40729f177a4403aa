/** Screen readers: names, roles and live regions; and the API's page. Every view of the explorer is held against axe-core in views.test.js. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { findings, OF_COLOURS, OF_WIDTHS } from "./support/axe.js";
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

/** Boxes that scroll on their own, and what is wider than the window. */
const hidden = (page) =>
  page.evaluate(() => {
    const scrolls = (element, way, size) => /auto|scroll|hidden/.test(getComputedStyle(element)[way]) && element[`scroll${size}`] > element[`client${size}`] + 1;
    const boxes = [...document.querySelectorAll("#api *:not(textarea, select, option, input, svg, svg *)")];
    return {
      boxes: boxes.filter((box) => box.clientHeight > 1 && (scrolls(box, "overflowY", "Height") || scrolls(box, "overflowX", "Width"))).map((box) => box.className),
      tooWide: document.documentElement.scrollWidth > innerWidth,
    };
  });

test("/docs: axe-core finds nothing, all text is there to read, and the keyboard is enough", async () => {
  const page = await open("docs", { viewport: { width: 1280, height: 900 } });
  const focus = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.locator(".opblock-tag").first().waitFor();
  assert.deepEqual(await findings(page), [], "closed");
  assert.deepEqual(await hidden(page), { boxes: [], tooWide: false });
  await page.keyboard.press("Tab");
  assert.equal(await focus(), "Skip to the requests");
  await page.keyboard.press("Enter");
  assert.equal(await focus(), "search");
  // On to the first request, which Enter opens.
  const first = page.locator("#operations-search-getNearest");
  const control = first.locator(".opblock-summary-control");
  const has = (element) => element.evaluate((element) => element === document.activeElement);
  for (let presses = 0; !(await has(control)); presses += 1) {
    assert.ok(presses < 20, await focus());
    await page.keyboard.press("Tab");
    const { outlineStyle, outlineWidth } = await page.evaluate(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      return { outlineStyle, outlineWidth };
    });
    assert.ok(outlineStyle !== "none" && parseFloat(outlineWidth) >= 2, `no focus to be seen on ${await focus()}`);
  }
  await page.keyboard.press("Enter");
  const word = first.locator("tr[data-param-name=word] input");
  await word.waitFor();
  await becomes(() => new URL(page.url()).hash, "#/search/getNearest");
  assert.deepEqual(await findings(page), [], "open");
  await word.focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("ocean");
  await first.getByRole("button", { name: "Execute" }).focus();
  await page.keyboard.press("Enter");
  await first.locator(".live-responses-table .microlight", { hasText: "oceans" }).first().waitFor();
  assert.deepEqual(await findings(page), [], "answered");
  await page.locator("#operations-search-postNearest .opblock-summary-control").click();
  await page.locator("#operations-search-postNearest textarea.body-param__text").waitFor();
  assert.deepEqual(await findings(page), [], "two requests open");
  await page.emulateMedia({ colorScheme: "dark" });
  assert.deepEqual(await findings(page, OF_COLOURS), [], "dark");
  await page.getByRole("button", { name: "Authorize" }).click();
  await page.locator(".close-modal").waitFor();
  assert.deepEqual(await findings(page), [], "a key is asked for");
  await page.getByRole("button", { name: "Close", exact: true }).first().click();
  assert.deepEqual(await hidden(page), { boxes: [], tooWide: false });
  for (const width of [390, 360]) {
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await hidden(page), { boxes: [], tooWide: false }, `${width}`);
  }
  assert.deepEqual(await findings(page, OF_WIDTHS), [], "360");
});
