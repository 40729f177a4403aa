/** Pictures of the main views, for people to look at: in the folder SCREENSHOTS_DIR. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { explorer } from "./support/explorer.js";
import { VIEWS } from "./support/views.js";

const folder = process.env.SCREENSHOTS_DIR ?? "../../target/screenshots";
mkdirSync(folder, { recursive: true });
const { open } = await explorer();

const sizes = [
  ["light", { viewport: { width: 1440, height: 900 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "light" }],
];

/** A picture of the whole page; an empty one would be small. */
async function take(page, name) {
  const picture = await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true, animations: "disabled" });
  assert.ok(picture.length > 20_000, `${name}: ${picture.length} bytes`);
}

for (const [size, options] of sizes) {
  test(`every view: ${size}`, async () => {
    for (const { name, hash, ready, failing } of VIEWS.filter(({ name }) => name !== "hundred")) {
      const page = await open(hash, { ...options, failing });
      await page.locator(ready).first().waitFor();
      await take(page, `${name}-${size}`);
    }
    const page = await open("", options);
    await page.locator("#word").pressSequentially("oce");
    await page.locator("#word-words [role=option]").first().waitFor();
    await page.keyboard.press("ArrowDown");
    await take(page, `start-${size}`);
  });
}
