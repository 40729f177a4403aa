/** Behind a reverse proxy: below a path, slow, and failing. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { becomes, explorer, listed, shows } from "./support/explorer.js";
import { proxy } from "./support/proxy.js";

const { service, open } = await explorer();
const proxies = [];
after(() => Promise.all(proxies.map((proxy) => proxy.close())));

const behind = async (options) => {
  proxies.push(await proxy(service, options));
  return proxies.at(-1).url;
};

test("everything works below a path, and nothing is asked beside it", async () => {
  const beside = [];
  const at = await behind({ before: (request) => void (request.url.startsWith("/kindred/") || beside.push(request.url)) });
  const page = await open("#word=ocean", { at });
  await shows(page, "Nearest to “ocean”");
  const [next] = await listed(page);
  await page.click("#answer li a >> nth=0");
  await shows(page, `Nearest to “${next}”`);
  assert.ok((await page.locator("#curl").textContent()).includes(`${at}nearest?word=`));
  await page.locator("#tab-analogy").click();
  await page.locator("#analogy").pressSequentially("king - man + wom");
  await page.click("#analogy-words [data-word=woman]");
  await page.keyboard.press("Enter");
  await shows(page, "king - man + woman ≈");
  assert.ok(page.url().startsWith(`${at}#`));
  for (const name of ["API", "OpenAPI"]) {
    assert.ok((await page.getByRole("link", { name, exact: true }).evaluate((link) => link.href)).startsWith(at));
  }
  await page.click("#brand");
  await shows(page, "For example: Nearest to “ocean”");
  assert.deepEqual(beside, []);
});

test("a slow way: the answer comes late, the time says so, and a newer question wins", async () => {
  let slow = false;
  const at = await behind({
    before: async (request) => void (slow && request.url.includes("word=ocean") && (await sleep(700))),
  });
  const page = await open("#word=piano", { at });
  slow = true;
  await page.evaluate(() => (location.hash = "word=ocean"));
  await becomes(() => page.evaluate(() => document.body.classList.contains("busy")), true);
  await shows(page, "Nearest to “ocean”");
  const way = await page.locator("#timings tr", { hasText: "network and browser" }).locator("td").textContent();
  assert.ok(/ s$/.test(way) || parseFloat(way) >= 650, way);

  await page.evaluate(() => (location.hash = "word=ocean&k=10"));
  await page.evaluate(() => (location.hash = "word=tree"));
  await shows(page, "Nearest to “tree”");
  await sleep(900);
  assert.equal(await page.locator("#answer-title").textContent(), "Nearest to “tree”");
});

test("a proxy that fails by itself is told as no answer, and the page goes on by itself", async () => {
  let fails = false;
  const at = await behind({
    before: (_, response) => fails && response.writeHead(502, { "Content-Type": "text/html" }).end("<h1>Bad gateway</h1>"),
  });
  const page = await open("#word=ocean", { at, failing: /502/ });
  fails = true;
  await page.evaluate(() => (location.hash = "word=tree"));
  await becomes(() => page.locator("#notice h2").textContent(), "The service is not responding");
  await sleep(2000);
  // It still does not: what the proxy says is no sign of life.
  assert.equal(await page.locator("#notice h2").textContent(), "The service is not responding");
  fails = false;
  await shows(page, "Nearest to “tree”");
  await becomes(() => page.locator("#notice").textContent(), "");
});
