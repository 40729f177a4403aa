/** The client in headless Chromium: of another origin than the service, of the same, and refused. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";

import { FLAGS } from "../../../tests/browser/support/chromium.js";
import { proxy } from "../../../tests/browser/support/proxy.js";
import { serve, temporaryFolder } from "../../../tests/browser/support/service.js";

const dist = new URL("../dist/", import.meta.url);

/**
 * Serves the client and a page below a server's `/page/`, and runs a script in the page.
 * @param {string} script the body of an async function that returns what the page reports; it has all exports
 */
async function inChromium(page, script) {
  const parameters = new URLSearchParams({ script });
  const words = [
    "--headless",
    ...FLAGS,
    `--user-data-dir=${join(temporaryFolder(), "profile")}`,
    `${page.url}/page/?${parameters}`,
  ];
  const browser = execFile(process.env.CHROMIUM, words);
  const ended = once(browser, "exit");
  try {
    return await page.reported(ended);
  } finally {
    browser.kill();
    await ended;
  }
}

const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="module">
  import * as all from "./index.js";
  const script = new URL(location).searchParams.get("script");
  const run = Object.getPrototypeOf(async function () {}).constructor(...Object.keys(all), script);
  const report = await run(...Object.values(all)).catch((error) => ({ thrown: String(error.stack) }));
  await fetch("report", { method: "POST", body: JSON.stringify(report) });
</script>`;

/** Answers below `/page/`: true if it did. */
function pages() {
  let tell;
  const answer = async (request, response) => {
    const [, name] = /^\/page\/([\w.]*)/.exec(request.url) ?? [];
    if (name === undefined) return false;
    if (name === "report") {
      let text = "";
      for await (const part of request) text += part;
      response.end();
      tell(JSON.parse(text));
    } else {
      response.setHeader("Content-Type", name ? "text/javascript" : "text/html");
      response.end(name ? readFileSync(new URL(name, dist)) : PAGE);
    }
    return true;
  };
  const reported = (ended) =>
    new Promise((resolve, reject) => {
      tell = resolve;
      ended.then(() => reject(new Error("Chromium ended before the page had reported")));
    });
  return { answer, reported };
}

async function pageServer() {
  const { answer, reported } = pages();
  const server = createServer(async (request, response) => (await answer(request, response)) || response.writeHead(404).end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => (server.closeAllConnections(), server.close()));
  return { url: `http://127.0.0.1:${server.address().port}`, reported };
}

const page = await pageServer();
const [open, closed] = await Promise.all([serve(["--cors-origins", page.url]), serve()]);
after(() => Promise.all([open.stop(), closed.stop()]));

test("a page of an origin that the service allows: answers, errors, ids, aborts and timeouts", async () => {
  const report = await inChromium(
    page,
    `
    const kindred = new Kindred({ baseUrl: ${JSON.stringify(open.url)}, apiKey: "not-needed" });
    const answer = await kindred.nearest({ word: "frog", k: 1 }, { requestId: "page-1" });
    const unknown = await kindred.nearest({ word: "Frog" }).catch((error) => error);
    const signal = AbortSignal.abort();
    const aborted = await kindred.model({ signal }).catch((error) => error === signal.reason);
    const queries = Array(1024).fill({ expression: "king - man + woman" });
    const late = await kindred.analogy({ queries, explain: true }, { timeoutMs: 50 }).catch(({ name }) => name);
    return {
      word: answer.neighbors[0].word, metadata: metadata(answer), models: (await kindred.models()).default,
      unknown: [unknown instanceof UnknownWordError, unknown.unknown, unknown.requestId.length], aborted, late,
    };`,
  );
  assert.deepEqual(
    { ...report, metadata: undefined },
    {
      word: "frogs",
      metadata: undefined,
      models: "demo",
      unknown: [true, [{ word: "Frog", suggestions: ["frog"] }], 16],
      aborted: true,
      late: "TimeoutError",
    },
  );
  assert.deepEqual([report.metadata.requestId, report.metadata.attempts], ["page-1", 1]);
  assert.match(report.metadata.serverTiming, /^queue;dur=/);
});

test("an origin that the service does not allow gets a ConnectionError that asks about it", async () => {
  const report = await inChromium(
    page,
    `
    const kindred = new Kindred({ baseUrl: ${JSON.stringify(closed.url)}, retries: 1 });
    return kindred.nearest({ word: "frog" }).catch((error) => [error instanceof ConnectionError, error.message]);`,
  );
  assert.equal(report[0], true);
  assert.match(report[1], /is the service running, and does it allow this origin\?/);
});

test("behind a proxy on the page's own origin, with a relative address, and not through a redirect", async () => {
  const { answer, reported } = pages();
  const before = async (request, response) => {
    if (request.url.startsWith("/moved/")) return response.writeHead(308, { Location: "/kindred/nearest" }).end();
    return answer(request, response);
  };
  const between = await proxy(closed, { before });
  after(() => between.close());
  const report = await inChromium(
    { url: new URL(between.url).origin, reported },
    `
    const { neighbors } = await new Kindred({ baseUrl: "../kindred" }).nearest({ word: "frog", k: 1 });
    const moved = await new Kindred({ baseUrl: "/moved" }).nearest({ word: "frog" }).catch((error) => error);
    return [neighbors[0].word, moved instanceof UnexpectedAnswerError, moved.message];`,
  );
  assert.deepEqual(report.slice(0, 2), ["frogs", true]);
  assert.match(report[2], /was redirected: set baseUrl/);
});
