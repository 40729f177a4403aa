/** Which requests are sent again, when, and how often. */

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import { test } from "node:test";

import { BusyError, ConnectionError, Kindred, KindredError, metadata, ServiceError, TimeoutError } from "kindred-vectors";

import { fake, FOUND, problem, rejection, reply } from "./support/fake.js";

const BUSY = problem(429, "queue_full");
const frog = { word: "frog" };

/** A server that fails a number of times before it answers. */
const failing = (times, fail) =>
  fake((response, request, count) => (count <= times ? fail(response, request) : reply(response, 200, FOUND)));

for (const [name, fail] of [
  ["429", (response) => reply(response, 429, BUSY)],
  ["503", (response) => reply(response, 503, problem(503, "draining"))],
  ["503 of a proxy", (response) => reply(response, 503, "<h1>Service Unavailable</h1>")],
  ["a reset connection", (response, request) => request.socket.resetAndDestroy()],
  [
    "a connection that closes inside the answer",
    (response) => {
      response.writeHead(200, { "Content-Length": "1000" });
      response.write('{"model":');
      setTimeout(() => response.destroy(), 20);
    },
  ],
]) {
  test(`after ${name} a question is sent again, with the same id and body`, async () => {
    const server = await failing(2, fail);
    const answer = await new Kindred({ baseUrl: server.url }).nearest(frog);
    assert.deepEqual(answer, FOUND);
    assert.equal(metadata(answer).attempts, 3);
    assert.equal(server.requests.length, 3);
    assert.equal(new Set(server.requests.map(({ headers }) => headers["x-request-id"])).size, 1);
    assert.deepEqual(
      server.requests.map(({ text }) => text),
      Array(3).fill('{"word":"frog"}'),
    );
    // Each says how long is left, and that is less and less.
    const left = server.requests.map(({ headers }) => Number(headers["request-timeout-ms"]));
    assert.ok(left[0] <= 30_000 && left[1] <= left[0] && left[2] <= left[1], left);
  });
}

test("a change by keys is sent again with its key, and the next has another", async () => {
  const server = await failing(2, (response, request) => request.socket.resetAndDestroy());
  const kindred = new Kindred({ baseUrl: server.url });
  await kindred.putRows({ rows: [{ key: "a", vector: [1] }] });
  await kindred.deleteRows({ keys: ["a"] });
  const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(keys.length, 4);
  assert.deepEqual([new Set(keys.slice(0, 3)).size, new Set(keys).size], [1, 2]);
});

for (const [name, change] of [
  ["a filter", (kindred) => kindred.deleteRows({ filter: "n = 1" })],
  ["a new table", (kindred) => kindred.createModel({ name: "t", dim: 1 })],
  ["a table that goes", (kindred) => kindred.deleteModel("t")],
  ["a fold", (kindred) => kindred.fold()],
]) {
  test(`a change without a key is sent again only if it was not begun: ${name}`, async () => {
    for (const [fail, requests] of [
      [(response, request) => request.socket.resetAndDestroy(), 1],
      [(response) => reply(response, 503, problem(503, "draining")), 1],
      [(response) => reply(response, 429, BUSY), 2],
    ]) {
      const server = await failing(1, fail);
      const done = change(new Kindred({ baseUrl: server.url }));
      await (requests === 1 ? rejection(done) : done);
      assert.equal(server.requests.length, requests);
      assert.equal(server.requests[0].headers["idempotency-key"], undefined);
    }
  });
}

test("retries are bounded, and the last error tells", async () => {
  for (const [retries, requests] of [
    [undefined, 3],
    [0, 1],
    [1, 2],
    [4, 5],
  ]) {
    const server = await failing(Infinity, (response) => reply(response, 429, BUSY));
    const options = retries === undefined ? {} : { retries };
    const error = await rejection(new Kindred({ baseUrl: server.url, ...options }).nearest(frog));
    assert.ok(error instanceof BusyError);
    assert.equal(server.requests.length, requests);
  }
  const server = await failing(Infinity, (response) => reply(response, 429, BUSY));
  await rejection(new Kindred({ baseUrl: server.url, retries: 4 }).nearest(frog, { retries: 1 }));
  assert.equal(server.requests.length, 2);
});

test("GET is sent again too", async () => {
  const server = await failing(1, (response) => reply(response, 429, BUSY));
  assert.deepEqual(await new Kindred({ baseUrl: server.url }).model(), FOUND);
  assert.deepEqual(
    server.requests.map(({ method, url }) => `${method} ${url}`),
    ["GET /model", "GET /model"],
  );
});

test("a reload is never sent again, whatever happens and whatever the options say", async () => {
  for (const fail of [
    (response) => reply(response, 429, problem(429, "over_limit", { retry_after: 1 }), { "Retry-After": "1" }),
    (response) => reply(response, 503, problem(503, "draining")),
    (response, request) => request.socket.resetAndDestroy(),
    (response) => (response.writeHead(200), response.write("{"), setTimeout(() => response.destroy(), 20)),
  ]) {
    const server = await failing(1, fail);
    const error = await rejection(new Kindred({ baseUrl: server.url, retries: 5 }).reload({ retries: 5 }));
    assert.ok(error instanceof KindredError);
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(server.requests.length, 1);
  }
});

test("a health check tells what is now", async () => {
  const server = await failing(Infinity, (response) => reply(response, 503, problem(503, "not_ready")));
  const kindred = new Kindred({ baseUrl: server.url, retries: 5 });
  assert.equal((await rejection(kindred.ready())).code, "not_ready");
  assert.ok((await rejection(kindred.live())) instanceof BusyError);
  assert.equal(server.requests.length, 2);
  await rejection(kindred.ready({ retries: 1 }));
  assert.equal(server.requests.length, 4);
});

test("no other status is sent again", async () => {
  for (const status of [400, 401, 403, 404, 405, 406, 408, 409, 413, 414, 415, 418, 422, 431, 500, 501, 502, 504, 599]) {
    const server = await failing(1, (response) => reply(response, status, problem(status, "internal"), { "Retry-After": "0" }));
    const error = await rejection(new Kindred({ baseUrl: server.url }).nearest(frog));
    assert.ok(
      status === 504 ? error instanceof TimeoutError : error instanceof ServiceError && error.status === status,
      `${status}: ${error}`,
    );
    assert.equal(server.requests.length, 1, `${status}`);
  }
});

test("Retry-After is waited for, in seconds, as a date, or in the problem document", async () => {
  for (const [headers, more, least] of [
    [{ "Retry-After": "1" }, {}, 1000],
    // Dates have whole seconds.
    [() => ({ "Retry-After": new Date(Date.now() + 2000).toUTCString() }), {}, 900],
    [{}, { retry_after: 1 }, 1000],
    [{ "Retry-After": "1" }, { retry_after: 0 }, 1000],
  ]) {
    const server = await failing(1, (response) =>
      reply(response, 429, { ...BUSY, ...more }, typeof headers === "function" ? headers() : headers),
    );
    await new Kindred({ baseUrl: server.url }).nearest(frog);
    const [first, second] = server.requests;
    const waited = second.at - first.at;
    assert.ok(waited >= least && waited < 5000, `${JSON.stringify(headers)}: ${waited} ms`);
  }
});

test("a Retry-After over the cap is not waited for: the error says how long, at once", async () => {
  for (const [retryAfter, options] of [
    ["11", {}],
    ["2", { maxRetryAfterMs: 1999 }],
    ["1", { maxRetryAfterMs: 0 }],
    ["999999999999", {}],
    ["5", { timeoutMs: 4000 }],
  ]) {
    const server = await failing(1, (response) =>
      reply(response, 503, problem(503, "engine_restarting"), { "Retry-After": retryAfter }),
    );
    const began = performance.now();
    const error = await rejection(new Kindred({ baseUrl: server.url, ...options }).nearest(frog));
    assert.ok(error instanceof BusyError && error.retryAfter === Number(retryAfter), `${retryAfter}: ${error}`);
    assert.ok(performance.now() - began < 4000);
    assert.equal(server.requests.length, 1);
  }
});

test("a Retry-After that says nothing counts as none", async () => {
  for (const value of ["soon", "-1", "1e9", "NaN", "", "Thu, 01 Jan 1970 00:00:00 GMT"]) {
    const server = await failing(1, (response) => reply(response, 429, { ...BUSY, retry_after: "9" }, { "Retry-After": value }));
    await new Kindred({ baseUrl: server.url }).nearest(frog);
    const [first, second] = server.requests;
    assert.ok(second.at - first.at < 4000, value);
  }
});

test("back-offs grow and are random", async (context) => {
  const random = context.mock.method(Math, "random", () => 1);
  const server = await failing(3, (response) => reply(response, 503, problem(503, "draining")));
  await new Kindred({ baseUrl: server.url, retries: 3 }).nearest(frog);
  const at = server.requests.map((request) => request.at);
  for (const [i, least] of [200, 400, 800].entries()) {
    const waited = at[i + 1] - at[i];
    assert.ok(waited >= least - 2 && waited < least + 5000, `${waited}`);
  }
  assert.equal(random.mock.callCount(), 3);
});

test("a service that is not there is named, with the reason and the id", async () => {
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port } = closed.address();
  closed.close();
  await once(closed, "close");
  const error = await rejection(new Kindred({ baseUrl: `http://127.0.0.1:${port}/x` }).nearest(frog, { requestId: "mine" }));
  assert.ok(error instanceof ConnectionError && error.name === "ConnectionError");
  assert.match(
    error.message,
    new RegExp(`POST http://127.0.0.1:${port}/x/nearest had no answer: .*ECONNREFUSED.*is the service running`),
  );
  assert.equal(error.requestId, "mine");
  assert.ok(error.cause instanceof TypeError);
});

test("without retries a lost reload is a ConnectionError", async () => {
  const server = await failing(1, (response, request) => request.socket.resetAndDestroy());
  const error = await rejection(new Kindred({ baseUrl: server.url }).reload());
  assert.ok(error instanceof ConnectionError);
  assert.match(error.message, /admin\/reload/);
});
