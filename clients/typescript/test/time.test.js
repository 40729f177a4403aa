/** Timeouts and aborts: a call ends when it should, wherever it is, and leaves nothing behind. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { BusyError, Kindred, KindredError, TimeoutError } from "kindred-vectors";

import { fake, FOUND, problem, rejection, reply } from "./support/fake.js";

const frog = { word: "frog" };

// The first request of a process takes longer.
before(async () => new Kindred({ baseUrl: (await fake((response) => reply(response, 200, FOUND))).url }).live());

/** What a server can do instead of answering, by where it stops. */
const STALLS = {
  "before the answer": () => {},
  "inside the answer": (response) => (response.writeHead(200), response.write('{"model":')),
  "while the client backs off": (response) => reply(response, 503, problem(503, "draining"), { "Retry-After": "9" }),
};

async function took(call) {
  const began = performance.now();
  const error = await rejection(call());
  return { error, ms: performance.now() - began };
}

for (const where of ["before the answer", "inside the answer"]) {
  test(`a timeout ends a call that waits ${where}, once, and hangs up`, async () => {
    const server = await fake(STALLS[where]);
    const { error, ms } = await took(() =>
      new Kindred({ baseUrl: server.url, timeoutMs: 500 }).nearest(frog, { requestId: "late" }),
    );
    assert.ok(error instanceof TimeoutError && error instanceof KindredError, `${error.stack}`);
    assert.match(error.message, /POST http:.*\/nearest had no answer within 500 ms \(sent once\); raise timeoutMs/);
    assert.equal(error.requestId, "late");
    assert.ok(ms >= 495 && ms < 3000, `${ms}`);
    assert.equal(server.requests.length, 1);
    assert.ok(Number(server.requests[0].headers["request-timeout-ms"]) <= 500);
    await sleep(100);
    assert.equal(server.gone, 1);
  });
}

test("the timeout is for the call, not for each attempt, and names the last error", async () => {
  const server = await fake(async (response) => {
    await sleep(40);
    reply(response, 429, problem(429, "queue_full"));
  });
  const kindred = new Kindred({ baseUrl: server.url, retries: 10 });
  const { error, ms } = await took(() => kindred.nearest(frog, { timeoutMs: 500 }));
  assert.ok(ms < 4000, `${ms}`);
  assert.ok(error instanceof BusyError || error.cause instanceof BusyError, `${error}`);
});

test("a call's own timeout counts, also if it is longer", async () => {
  const server = await fake(async (response) => {
    await sleep(150);
    reply(response, 200, FOUND);
  });
  const kindred = new Kindred({ baseUrl: server.url, timeoutMs: 50 });
  assert.ok((await rejection(kindred.nearest(frog))) instanceof TimeoutError);
  assert.deepEqual(await kindred.nearest(frog, { timeoutMs: 5000 }), FOUND);
  assert.deepEqual(await kindred.nearest(frog, { timeoutMs: Infinity }), FOUND);
  assert.equal(server.requests[2].headers["request-timeout-ms"], undefined);
});

test("a reload has no timeout unless it is given one", async () => {
  const server = await fake(async (response) => {
    await sleep(150);
    reply(response, 200, { models: [], files: [] });
  });
  const kindred = new Kindred({ baseUrl: server.url, timeoutMs: 50 });
  assert.deepEqual(await kindred.reload(), { models: [], files: [] });
  assert.equal(server.requests[0].headers["request-timeout-ms"], undefined);
  assert.ok((await rejection(kindred.reload({ timeoutMs: 50 }))) instanceof TimeoutError);
});

test("the service's own timeout is a TimeoutError too", async () => {
  const server = await fake((response) =>
    reply(response, 504, problem(504, "deadline_passed"), { "X-Request-Id": "of-the-service" }),
  );
  const error = await rejection(new Kindred({ baseUrl: server.url }).nearest(frog));
  assert.ok(error instanceof TimeoutError);
  assert.equal(error.cause.code, "deadline_passed");
  assert.equal(error.requestId, "of-the-service");
});

test("an aborted signal sends nothing", async () => {
  const server = await fake((response) => reply(response, 200, FOUND));
  const reason = new Error("mine");
  assert.equal(
    await rejection(new Kindred({ baseUrl: server.url }).nearest(frog, { signal: AbortSignal.abort(reason) })),
    reason,
  );
  assert.equal(server.requests.length, 0);
});

for (const [where, stall] of Object.entries(STALLS)) {
  test(`an abort ends a call ${where}, with the signal's reason, and nothing is sent after it`, async () => {
    const server = await fake(stall);
    const controller = new AbortController();
    const kindred = new Kindred({ baseUrl: server.url, retries: 5 });
    setTimeout(() => controller.abort(), 300);
    const { error, ms } = await took(() => kindred.nearest(frog, { signal: controller.signal }));
    assert.equal(error, controller.signal.reason);
    assert.equal(error.name, "AbortError");
    assert.ok(ms < 3000, `${ms}`);
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    await sleep(100);
    assert.equal(server.requests.length, 1);
    if (where !== "while the client backs off") assert.equal(server.gone, 1);
  });
}

test("AbortSignal.timeout rejects with its own reason", async () => {
  const server = await fake(() => {});
  const error = await rejection(new Kindred({ baseUrl: server.url }).nearest(frog, { signal: AbortSignal.timeout(50) }));
  assert.ok(error instanceof DOMException && error.name === "TimeoutError");
});

test("an abort after the answer changes nothing, and a signal can serve many calls without piling up listeners", async () => {
  const server = await fake((response) => reply(response, 200, FOUND));
  const controller = new AbortController();
  const kindred = new Kindred({ baseUrl: server.url });
  for (let call = 0; call < 20; call += 1) await kindred.nearest(frog, { signal: controller.signal });
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  const answer = await kindred.nearest(frog, { signal: controller.signal });
  controller.abort();
  assert.deepEqual(answer, FOUND);
});

test("an answered call leaves no timer that keeps the process alive", async () => {
  const server = await fake((response) => reply(response, 200, FOUND));
  const before = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  await new Kindred({ baseUrl: server.url, timeoutMs: 60_000 }).nearest(frog);
  const after = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  assert.ok(after <= before, `${before} timers before, ${after} after`);
});
