/** The views of the page: each is tried in light and dark, on a phone, and by the accessibility checker (views.test.js). */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const folder = process.env.SCREENSHOTS_DIR ?? "../../target/screenshots";
mkdirSync(folder, { recursive: true });

/** `ready` is on the page when the view is complete. */
export const VIEWS = [
  { name: "neighbours", hash: "#word=ocean", ready: "#heat .cell" },
  { name: "hundred", hash: "#word=ocean&k=100", ready: "#heat .cell" },
  { name: "text", hash: "#text=the+deep+blue+ocean+qqqq&k=10", ready: "#heat .cell" },
  { name: "analogy", hash: "#analogy=king+-+man+%2B+woman", ready: "#heat .cell" },
  { name: "compare", hash: "#compare=coffee&with=tea&k=10", ready: "#heat .cell" },
  { name: "terms", hash: "#analogy=king+%2B+man+%2B+tree+%2B+house+%2B+river+%2B+tea+%2B+green+-+war+-+city&k=10", ready: "#heat .cell" },
  { name: "odd", hash: "#odd=red+green+dog+blue", ready: "#heat .cell" },
  { name: "classify", hash: "#classify=not+bad+at+all%2C+but+qqqq+and+far+too+long", ready: "#answer .ngrams" },
  { name: "expand", hash: "#expand=cheap+flights+to+the+qqqq+coast", ready: "#answer .expanded li" },
  { name: "tab", hash: "#tab=analogy", ready: "#method" },
  { name: "no-documents", hash: "#tab=documents", ready: "#no-documents:not([hidden])" },
  { name: "unknown", hash: "#word=oceann", ready: "#notice .chip" },
  { name: "bad-expression", hash: "#analogy=king+-+-+man", ready: "#notice .pointed" },
];

/** Runs a check in light and in dark, and returns to light. */
export async function inBoth(page, check) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await check(colorScheme);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** A picture of the whole page; an empty one would be small. */
export async function take(page, name) {
  const path = join(folder, `${name}.png`);
  const picture = await page.screenshot({ path, fullPage: true, animations: "disabled", scale: "css" });
  assert.ok(picture.length > 10_000, `${name}: ${picture.length} bytes`);
}

/** The width of the page, and the elements that stick out of a window of this width. */
export const wide = (page, width) =>
  page.evaluate((width) => ({
    document: document.documentElement.scrollWidth,
    elements: [...document.querySelectorAll("body *")]
      .filter((element) => !element.closest("svg.map, .hidden, .skip") && element.getBoundingClientRect().right > width + 0.5)
      .map((element) => `${element.tagName} ${element.id} ${element.className}`),
  }), width);
