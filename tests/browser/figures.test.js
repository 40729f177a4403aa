/** What the page costs: bytes, requests, the time to the first answer, how much moves while it loads. */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { explorer } from "./support/explorer.js";
import { serve } from "./support/service.js";

const { service, open } = await explorer();
const packing = await serve(["--compress-from-bytes", "500"]);
after(() => packing.stop());

/** Larger than this, a page of its kind has grown fat. */
const MOST_BYTES = 165_000;
/** By the Core Web Vitals (web.dev/articles/vitals) "good", and, as the machine may be busy, "not poor". */
const MOST_SHIFT = 0.1;
const MOST_PAINT_MS = 4000;

/** Watches what browsers tell of their own painting. */
const watch = (page) =>
  page.addInitScript(() => {
    window.figures = { shift: 0, paint: 0, firstAnswer: null };
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.figures.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    new PerformanceObserver((list) => (window.figures.paint = list.getEntries().at(-1).startTime)).observe({
      type: "largest-contentful-paint",
      buffered: true,
    });
    addEventListener("DOMContentLoaded", () =>
      new MutationObserver(() => {
        if (document.querySelector("#answer li")) window.figures.firstAnswer ??= performance.now();
      }).observe(document.body, { subtree: true, childList: true }),
    );
  });

for (const [name, { url }] of [["as it is", service], ["everything compressed", packing]]) {
  test(`bytes, requests, times and shifts stay small: ${name}`, async (t) => {
    const sizes = [];
    const pending = [];
    const page = await open("", {
      at: `${url}/`,
      before: async (page) => {
        await watch(page);
        page.on("requestfinished", (request) =>
          pending.push(Promise.all([request.sizes(), request.response()]).then(async ([size, response]) => {
            const isFile = request.method() === "GET" && /\/($|explorer\/)/.test(new URL(request.url()).pathname);
            sizes.push({ isFile, wire: size.responseBodySize + size.responseHeadersSize, plain: (await response.body()).length });
          })),
        );
      },
    });
    await page.locator("#heat .cell").first().waitFor();
    await page.waitForTimeout(500);
    await Promise.all(pending);
    const files = sizes.filter(({ isFile }) => isFile);
    const sum = (all, field) => all.reduce((sum, size) => sum + size[field], 0);
    const { shift, paint, firstAnswer } = await page.evaluate(() => window.figures);
    const cumulative = shift.toFixed(4);
    t.diagnostic(`files: ${files.length} requests, ${sum(files, "wire")} bytes with headers, ${sum(files, "plain")} bytes unpacked`);
    t.diagnostic(`questions: ${sizes.length - files.length} requests, ${sum(sizes, "wire") - sum(files, "wire")} bytes with headers`);
    t.diagnostic(`first answer after ${firstAnswer.toFixed(0)} ms, largest contentful paint ${paint.toFixed(0)} ms, layout shift ${cumulative}`);
    assert.ok(files.length > 10);
    assert.ok(sum(files, "plain") < MOST_BYTES);
    if (url === packing.url) assert.ok(sum(files, "wire") < 0.65 * sum(files, "plain"));
    assert.ok(shift < MOST_SHIFT, `${shift}`);
    assert.ok(paint > 0 && paint < MOST_PAINT_MS, `${paint}`);
    assert.ok(firstAnswer < MOST_PAINT_MS, `${firstAnswer}`);
  });
}

test("a second visit loads no file again that has not changed", async () => {
  const response = await fetch(`${service.url}/explorer/main.js`);
  const tag = response.headers.get("ETag");
  assert.equal((await fetch(`${service.url}/explorer/main.js`, { headers: { "If-None-Match": tag } })).status, 304);
});
