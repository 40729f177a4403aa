/** A service that takes API keys: the page loads without one, asks for it, and goes on. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { becomes, explorer, settled, shows } from "./support/explorer.js";
import { apiKey, temporaryFolder } from "./support/service.js";

const { key, line } = apiKey();
const keys = join(temporaryFolder(), "keys");
writeFileSync(keys, `${line}\n`);
const { open } = await explorer(["--api-keys-file", keys]);

test("the key is asked for, refused when wrong, taken when right, and kept in this tab only", async () => {
  const page = await open("#word=ocean", { failing: /401/ });
  await becomes(() => page.locator("#notice h2").textContent(), "This service requires an API key");
  await page.getByLabel("API key (kept").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByLabel("This key was refused").fill(key);
  await page.getByRole("button", { name: "Continue" }).click();
  await shows(page, "Nearest to “ocean”");
  assert.equal(await page.locator("#notice").textContent(), "");

  // Everything else has it, too.
  await page.fill("#word", "");
  await page.locator("#word").pressSequentially("pian");
  await page.click("#word-words [data-word=piano]");
  await shows(page, "Nearest to “piano”");
  assert.equal(await page.locator("#heat .cell").count(), 21 * 21);
  // It is neither shown nor in the address, and a command takes it from the environment.
  assert.ok(!(await page.content()).includes(key) && !page.url().includes(key));
  assert.match(await page.locator("#curl").textContent(), /-H "Authorization: Bearer \$KINDRED_API_KEY"/);
  await page.reload();
  await shows(page, "Nearest to “piano”");
  assert.equal(await page.evaluate((key) => JSON.stringify({ ...localStorage }).includes(key), key), false);

  const other = await open("#word=ocean", { failing: /401/ });
  await settled(other);
  assert.equal(await other.locator("#notice h2").textContent(), "This service requires an API key");
});
