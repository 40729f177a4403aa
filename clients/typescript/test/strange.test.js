/** Answers that Kindred does not give: of proxies, of other programs, damaged. And what is sent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import {
  AccessError,
  BusyError,
  errorOf,
  Kindred,
  KindredError,
  metadata,
  NotFoundError,
  RequestError,
  ServiceError,
  TimeoutError,
  UnexpectedAnswerError,
  UnknownWordError,
} from "kindred-vectors";

import { fake, FOUND, problem, rejection, reply } from "./support/fake.js";

const frog = { word: "frog" };
const PAGE = `<html><head><title>502 Bad Gateway</title></head>\n<body>${"x".repeat(500)}</body></html>`;

/** What a call to a server rejects with that always answers so. */
async function errorAfter(status, body, headers) {
  const server = await fake((response) => reply(response, status, body, headers));
  return rejection(new Kindred({ baseUrl: server.url, retries: 0 }).nearest(frog));
}

test("a proxy's error page is told as such, and quoted in part", async () => {
  for (const [status, kind] of [
    [502, ServiceError],
    [503, BusyError],
    [504, TimeoutError],
    [404, NotFoundError],
    [401, AccessError],
    [413, RequestError],
  ]) {
    const error = await errorAfter(status, PAGE);
    assert.equal(error.constructor, kind, `${status}: ${error}`);
    assert.match(error.message, /POST http:.*\/nearest: the answer is not Kindred's but "<html><head><title>502 Bad Gateway/);
    assert.match(error.message, new RegExp(`is a proxy in between, is baseUrl right\\? \\(${status}\\)$`));
    assert.ok(error.message.length < 350);
    const { code, problem: document, requestId } = error.cause ?? error;
    assert.deepEqual([code, document], [null, null]);
    assert.match(requestId, /^[0-9a-f]{16}$/);
  }
});

test("a malformed problem document is no problem document", async () => {
  for (const body of [
    "",
    "{",
    "null",
    "[]",
    '"x"',
    "7",
    "{}",
    '{"code":7,"detail":"x"}',
    '{"code":"unknown_word"}',
    '{"code":"x","detail":null}',
    "\u0000\ufffd",
  ]) {
    const error = await errorAfter(422, body);
    assert.equal(error.constructor, RequestError, body);
    assert.deepEqual([error.code, error.problem, error.retryAfter], [null, null, null], body);
    assert.match(error.message, body ? /not Kindred's but "/ : /not Kindred's but empty/);
  }
});

test("fields of the wrong kind inside a problem document do no harm", async () => {
  const entry = { word: "Frog", suggestions: ["frog"] };
  for (const [unknown, known] of [
    ["Frog", []],
    [null, []],
    [{}, []],
    [[], []],
    [[null, 7, "Frog", {}, { word: 7, suggestions: [] }, { word: "x" }, entry], [entry]],
  ]) {
    const error = await errorAfter(404, problem(404, "unknown_word", { unknown, retry_after: "soon" }));
    assert.equal(error.constructor, UnknownWordError);
    assert.deepEqual([error.unknown, error.retryAfter], [known, null]);
  }
});

test("a code of a later version is passed on", async () => {
  const error = await errorAfter(422, problem(422, "from_the_future"));
  assert.equal(error.constructor, RequestError);
  assert.equal(error.code, "from_the_future");
  assert.equal(error.message, "told by from_the_future (422 from_the_future)");
});

test("each error has its class, its name, and those above it", async () => {
  for (const [status, code, ...classes] of [
    [404, "unknown_word", UnknownWordError, RequestError, ServiceError, KindredError, Error],
    [404, "no_such_model", NotFoundError, RequestError, ServiceError, KindredError, Error],
    [422, "invalid_value", RequestError, ServiceError, KindredError, Error],
    [501, "unknown_transfer_coding", RequestError, ServiceError, KindredError, Error],
    [401, "unauthorized", AccessError, ServiceError, KindredError, Error],
    [403, "forbidden", AccessError, ServiceError, KindredError, Error],
    [429, "queue_full", BusyError, ServiceError, KindredError, Error],
    [503, "draining", BusyError, ServiceError, KindredError, Error],
    [504, "deadline_passed", TimeoutError, KindredError, Error],
    [500, "internal", ServiceError, KindredError, Error],
    [409, "reload_in_progress", ServiceError, KindredError, Error],
    [408, "body_timeout", ServiceError, KindredError, Error],
  ]) {
    const error = await errorAfter(status, problem(status, code, { field: "k" }));
    assert.equal(error.constructor, classes[0], code);
    assert.equal(error.name, classes[0].name);
    assert.ok(error.stack.startsWith(`${error.name}: told by ${code}`), error.stack);
    for (const kind of classes) assert.ok(error instanceof kind);
    assert.equal((error.cause ?? error).code, code);
    if (error instanceof RequestError) assert.equal(error.field, "k");
    assert.equal(errorOf(problem(status, code)).constructor, classes[0]);
  }
});

test("an answer with status 200 that is no object is not passed on", async () => {
  for (const body of [PAGE, "", "null", "7", '"frog"', '{"model":"demo"']) {
    const error = await errorAfter(200, body);
    assert.ok(error instanceof UnexpectedAnswerError && error.status === 200, body);
    assert.match(error.message, /^POST http:.*\/nearest: the answer is not Kindred's but .*is baseUrl right\?/);
  }
});

test("a redirect is not followed: the key goes nowhere else, and POST stays POST", async () => {
  const target = await fake((response) => reply(response, 200, FOUND));
  for (const status of [301, 302, 307, 308]) {
    const server = await fake((response) => reply(response, status, "", { Location: `${target.url}/nearest` }));
    const error = await rejection(new Kindred({ baseUrl: server.url, apiKey: "secret" }).nearest(frog));
    assert.ok(error instanceof UnexpectedAnswerError && error.status === status);
    assert.match(error.message, new RegExp(`was redirected to ${target.url}/nearest: set baseUrl`));
    assert.equal(server.requests.length, 1);
  }
  assert.equal(target.requests.length, 0);
});

test("what is sent: path, model, key, id, body", async () => {
  const server = await fake((response) =>
    reply(response, 200, FOUND, { "X-Request-Id": "of-the-service", "Server-Timing": "total;dur=1" }),
  );
  const kindred = new Kindred({ baseUrl: `${server.url}/below/here`, apiKey: "secret", model: "a/b ü?" });
  const answer = await kindred.nearest({ vector: new Float32Array([0.5, 0.1]), k: 3, exclude: undefined });
  await kindred.word({ word: "../a b&c=d+é" });
  await kindred.models();
  await kindred.metrics();
  const [nearest, word, models, metrics] = server.requests;
  assert.deepEqual([nearest.method, nearest.url], ["POST", "/below/here/models/a%2Fb%20%C3%BC%3F/nearest"]);
  assert.equal(nearest.text, '{"vector":[0.5,0.10000000149011612],"k":3}');
  assert.equal(nearest.headers["content-type"], "application/json");
  assert.equal(nearest.headers.authorization, "Bearer secret");
  assert.match(nearest.headers["x-request-id"], /^[0-9a-f]{16}$/);
  assert.deepEqual(new URL(word.url, server.url).searchParams.get("word"), "../a b&c=d+é");
  assert.equal(word.method, "GET");
  assert.deepEqual([word.text, word.headers["content-type"]], ["", undefined]);
  assert.equal(models.url, "/below/here/models");
  assert.equal(metrics.headers.accept, "text/plain");
  assert.deepEqual(metadata(answer), { requestId: "of-the-service", attempts: 1, serverTiming: "total;dur=1" });
  assert.equal(metadata({ ...answer }), undefined);
  assert.notEqual(nearest.headers["x-request-id"], word.headers["x-request-id"]);
});

test("a client does not print its key", () => {
  const kindred = new Kindred({ baseUrl: "http://127.0.0.1", apiKey: "secret" });
  for (const text of [inspect(kindred, { showHidden: true, depth: 9 }), JSON.stringify(kindred), String(kindred)]) {
    assert.ok(!text.includes("secret"), text);
  }
});

test("options that can't be sent fail at once, by name", async () => {
  const baseUrl = "http://127.0.0.1:1";
  for (const [options, says] of [
    [{ baseUrl: "127.0.0.1:8080" }, /baseUrl/],
    [{ baseUrl: "localhost:8080" }, /baseUrl/],
    [{ baseUrl: "" }, /baseUrl must be an address such as/],
    [{ baseUrl: "ftp://x" }, /baseUrl/],
    [{ baseUrl: "http://user:pw@x" }, /baseUrl.*without a user/],
    [{ baseUrl: "http://user@x" }, /baseUrl.*without a user/],
    [{ baseUrl: "http://:pw@x" }, /baseUrl/],
    [{ baseUrl: "http://x/?a=b" }, /baseUrl/],
    [{ baseUrl: "http://x/#a" }, /baseUrl/],
    [{ apiKey: "" }, /apiKey/],
    [{ apiKey: "a\nb: c" }, /apiKey must be visible ASCII characters, without spaces$/],
    [{ apiKey: "ключ" }, /apiKey/],
    [{ model: "" }, /model/],
    [{ model: ".." }, /model must be a model's name, not `\.\.`/],
    [{ timeoutMs: 0 }, /timeoutMs/],
    [{ timeoutMs: -1 }, /timeoutMs/],
    [{ timeoutMs: NaN }, /timeoutMs/],
    // More would make setTimeout fire at once.
    [{ timeoutMs: 2 ** 31 }, /timeoutMs must be from 1 to 2147483647, or Infinity, not 2147483648/],
    [{ retries: -1 }, /retries/],
    [{ retries: 1.5 }, /retries/],
    [{ retries: Infinity }, /retries must be a whole number from 0 to 10, not Infinity/],
    [{ maxRetryAfterMs: -1 }, /maxRetryAfterMs/],
    [{ maxRetryAfterMs: Infinity }, /maxRetryAfterMs/],
    // Without types, as from a file or the environment.
    [{ timeoutMs: "500" }, /timeoutMs must be from 1 to 2147483647, or Infinity, not "500"$/],
    [{ maxRetryAfterMs: "500" }, /maxRetryAfterMs must be from 0 to 3600000, not "500"$/],
    [{ retries: null }, /retries must be a whole number from 0 to 10, not null$/],
    [{ apiKey: null }, /apiKey must be visible ASCII characters/],
    [{ model: null }, /model must be a model's name, not `null`/],
    [{ fetch: "node-fetch" }, /fetch must be a function/],
    [{ timeout: 500 }, /^TypeError: a client has no option `timeout` \(did you mean `timeoutMs`\?\); its options are baseUrl, model/],
    [{ baseURL: "http://x" }, /no option `baseURL` \(did you mean `baseUrl`\?\)/],
    [{ api_key: "secret" }, /no option `api_key` \(did you mean `apiKey`\?\)/],
    [{ headers: {} }, /no option `headers`; its options are/],
  ]) {
    assert.throws(() => new Kindred({ baseUrl, ...options }), says, JSON.stringify(options));
    // A key is not repeated.
    if (options.apiKey)
      assert.throws(
        () => new Kindred({ baseUrl, ...options }),
        (error) => !error.message.includes(options.apiKey),
      );
  }
  for (const options of [undefined, null, baseUrl, new URL(baseUrl)]) {
    assert.throws(() => new Kindred(options), /takes its options as an object: new Kindred\(\{ baseUrl/, String(options));
  }
  for (const model of [".", undefined, { model: "glove" }]) {
    assert.throws(() => new Kindred({ baseUrl }).withModel(model), /model must be a model's name/);
  }
  const kindred = new Kindred({ baseUrl });
  for (const options of [
    { timeoutMs: 0 },
    { retries: 11 },
    { requestId: "" },
    { requestId: "a b" },
    { requestId: "x".repeat(129) },
    { signal: new AbortController() },
    { timeout: 500 },
    { model: "glove" },
  ]) {
    const error = await rejection(kindred.nearest(frog, options));
    assert.ok(error instanceof TypeError || error instanceof RangeError);
    assert.match(error.message, new RegExp(Object.keys(options)[0]));
  }
  const elsewhere = await rejection(kindred.nearest(frog, { model: "glove" }));
  assert.match(elsewhere.message, /^a call has no option `model`: it is one of the client; its options are signal, timeoutMs/);
  for (const [options, says] of [
    [null, /a call takes its options as an object, such as \{ timeoutMs: 500 \}, not null$/],
    [500, /not 500$/],
  ]) {
    assert.match((await rejection(kindred.nearest(frog, options))).message, says);
  }
});

test("what JSON can't hold is the caller's error, and is not sent", async () => {
  const server = await fake((response) => reply(response, 200, FOUND));
  const round = { word: "frog" };
  round.exclude = [round];
  for (const body of [{ word: "frog", k: 1n }, round]) {
    assert.equal((await rejection(new Kindred({ baseUrl: server.url }).nearest(body))).constructor, TypeError);
  }
  assert.equal(server.requests.length, 0);
});

test("another fetch can send", async () => {
  const asked = [];
  const fetch = async (...request) => (asked.push(request), Response.json(FOUND));
  const kindred = new Kindred({ baseUrl: "http://nowhere.invalid/", fetch }).withModel("glove");
  assert.deepEqual(await kindred.nearest(frog), FOUND);
  assert.equal(asked[0][0], "http://nowhere.invalid/models/glove/nearest");
});
