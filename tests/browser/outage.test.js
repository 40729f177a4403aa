/** The service goes and comes back; it is too busy; another version of the model takes its place. */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { becomes, explorer, listed, settled, shows } from "./support/explorer.js";
import { prepare, serve } from "./support/service.js";

const { open } = await explorer(null);
const services = [];
const start = async (...settings) => (services.push(await serve(...settings)), services.at(-1));
after(() => Promise.all(services.map((service) => service.stop())));

const failing = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/;

test("while the service is gone the page says so, keeps what it has, and goes on by itself", async () => {
  const first = await start();
  const page = await open("#word=ocean", { at: `${first.url}/`, failing });
  const before = await listed(page);
  await first.stop();
  await page.fill("#word", "piano");
  await page.press("#word", "Enter");
  await becomes(() => page.locator("#notice h2").textContent(), "The service is not responding");
  assert.deepEqual(await listed(page), before);
  assert.equal(await page.locator("#notice").getAttribute("role"), "alert");
  await start([], first.port);
  await shows(page, "Nearest to “piano”");
  await becomes(() => page.locator("#notice").textContent(), "");
});

test("`Try now` asks at once", async () => {
  const first = await start();
  const page = await open("#word=ocean", { at: `${first.url}/`, failing });
  await first.stop();
  await page.evaluate(() => (location.hash = "word=tree"));
  await becomes(() => page.locator("#notice h2").textContent(), "The service is not responding");
  await start([], first.port);
  await page.getByRole("button", { name: "Try now" }).click().catch(() => {}); // It may have gone on already.
  await shows(page, "Nearest to “tree”");
});

test("a service that is too busy is asked again when it said", async () => {
  const service = await start();
  const page = await open("#word=ocean", { at: `${service.url}/`, failing: /429/ });
  let refused = 0;
  await page.route("**/nearest?word=tree*", (route) => {
    refused += 1;
    if (refused > 1) return route.continue();
    const problem = { type: "about:blank", title: "Too many requests", status: 429, detail: "the queue is full", code: "queue_full" };
    return route.fulfill({ status: 429, headers: { "Retry-After": "2" }, contentType: "application/problem+json", body: JSON.stringify(problem) });
  });
  await page.evaluate(() => (location.hash = "word=tree"));
  await becomes(() => page.locator("#notice").textContent(), "Too many requeststhe queue is full. Retrying in 2 s.Try now");
  const began = Date.now();
  await shows(page, "Nearest to “tree”");
  assert.ok(Date.now() - began > 1000);
  assert.equal(refused, 2);
});

test("facts follow when another version of the model is served", async () => {
  const folder = prepare({ one: [1, 0], two: [1, 1], three: [0, 1] });
  const service = await start(["--model", folder, "--keep-tables", "false"]);
  const page = await open("#word=one", { at: `${service.url}/` });
  const fact = (name) => page.locator("#facts div", { has: page.locator(`dt:text-is("${name}")`) }).locator("dd").textContent();
  assert.equal(await fact("Words"), "3");
  const version = await fact("Version");
  prepare({ one: [1, 0, 1], two: [1, 1, 0], three: [0, 1, 0], four: [1, 1, 1] }, folder);
  service.signal("SIGHUP");
  await becomes(async () => (await service.get("model")).rows, 4);
  await page.click("#answer li a >> nth=0");
  await becomes(() => fact("Words"), "4");
  await settled(page);
  assert.equal(await fact("Dimensions"), "3");
  assert.notEqual(await fact("Version"), version);
  assert.equal((await listed(page)).length, 3);
});
