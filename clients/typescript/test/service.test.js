/** Every method against the real service, and its errors. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import {
  AccessError,
  BusyError,
  errorOf,
  Kindred,
  metadata,
  NotFoundError,
  RequestError,
  TimeoutError,
  UnknownWordError,
} from "kindred-vectors";

import { apiKey, kindred as program, prepare, serve, temporaryFolder } from "../../../tests/browser/support/service.js";
import { rejection } from "./support/fake.js";

const reader = apiKey();
const admin = apiKey("--admin");
const keys = join(temporaryFolder(), "keys");
writeFileSync(keys, `${reader.line}\n${admin.line.replace("reader", "operator")}\n`);
const odd = { "a/b": [1, 0], "..": [1, 0.1], "+": [1, 0.2], "new york": [1, 0.3], "é%20": [0, 1] };
// What the command calls the built-in model.
const demo = join(temporaryFolder(), "demo");
program("prepare", new URL("../../../models/demo/demo-100d.txt.gz", import.meta.url).pathname, "--out", demo);
const models = ["--model", `demo=${demo}`, "--model", `ödd=${prepare(Object.entries(odd))}`, "--keep-tables", "false"];

const [service, closed, changing] = await Promise.all([
  serve(),
  serve([...models, "--api-keys-file", keys]),
  serve(["--models-dir", temporaryFolder()]),
]);
after(() => Promise.all([service.stop(), closed.stop(), changing.stop()]));
const kindred = new Kindred({ baseUrl: service.url });
const tables = new Kindred({ baseUrl: changing.url });

/** A client of a new table of two dimensions. */
async function table(name) {
  const { rows, dim } = await tables.createModel({ name, dim: 2, attributes: { n: "integer" } });
  assert.deepEqual([rows, dim], [0, 2]);
  return tables.withModel(name);
}

/** The operations of openapi.yaml by the method that asks them, with what is to be true of the answer. */
const ASKED = {
  postNearest: async () => {
    const { model, version, neighbors } = await kindred.nearest({ word: "frog", k: 2, with_vectors: true, explain: true });
    assert.equal(model, "demo");
    const page = await kindred.nearest({ word: "frog", k: 1, offset: 1 });
    assert.deepEqual(page.neighbors.map(({ word }) => word), ["toad"]);
    await assert.rejects(kindred.nearest({ word: "frog", distinct: "brand" }), { code: "invalid_value" });
    assert.match(version, /^[0-9a-f]{16}$/);
    assert.deepEqual(
      neighbors.map(({ word, score }) => [word, score]),
      [
        ["frogs", 0.6804725969872646],
        ["toad", 0.6519971100007262],
      ],
    );
    assert.equal(neighbors[0].vector.length, 100);
    assert.equal(neighbors[0].terms[0].word, "frog");
    const { results } = await kindred.nearest({
      k: 1,
      queries: [{ word: "ocean" }, { word: "Frog" }, { text: "A small boat?" }],
    });
    assert.equal(results[0].neighbors[0].word, "oceans");
    const error = errorOf(results[1].error);
    assert.ok(error instanceof UnknownWordError);
    assert.deepEqual([error.unknown, error.requestId], [[{ word: "Frog", suggestions: ["frog"] }], null]);
    assert.deepEqual(results[2].used, ["a", "small", "boat"]);
    // A vector of float32 as the service gave it finds its word.
    const { vector } = await kindred.word({ word: "frog", with_vector: true });
    const found = await kindred.nearest({ vector: new Float32Array(vector), k: 1 });
    assert.deepEqual([found.neighbors[0].word, found.neighbors[0].score], ["frog", 1]);
  },
  postAnalogy: async () => {
    const { neighbors } = await kindred.analogy({ expression: "king - man + woman", k: 1 });
    assert.deepEqual([neighbors[0].word, neighbors[0].score], ["queen", 0.8176588653993436]);
    const queries = [{ positive: ["paris", { word: "japan", weight: 0.8 }], negative: ["france"] }, { expression: "king man" }];
    const { results } = await kindred.analogy({ queries, k: 1 });
    assert.equal(results[0].neighbors[0].word, "tokyo");
    assert.deepEqual([results[1].error.code, results[1].error.column], ["bad_expression", 6]);
  },
  postRank: async () => {
    const { ranked } = await kindred.rank({ word: "frog", words: ["toad", "king"] });
    assert.deepEqual(
      ranked.map(({ rank }) => rank),
      [2, 26403],
    );
  },
  postClassify: async () => {
    const one = await kindred.classify({ text: "a moving and funny film", top: 1 });
    assert.equal(one.labels[0].label, "positive");
    const { results } = await kindred.classify({ texts: ["works great", ["what", "a", "waste"]], top: 1 });
    assert.deepEqual(
      results.map(({ labels }) => labels[0].label),
      ["positive", "negative"],
    );
  },
  postExpand: async () => {
    const { terms } = await kindred.expand({ text: "cheap flights", top: 3 });
    assert.deepEqual(
      terms.map(({ term }) => term),
      ["cheap", "flights", "inexpensive"],
    );
    for (const format of ["terms", "impacts", "rank_features", "sparse_vector", "qdrant", "vespa"]) {
      const answer = await kindred.expand({ texts: ["frog", ["king"]], top: 2, format });
      assert.ok(
        answer.results.every((result) => typeof result[format] === "object"),
        format,
      );
    }
    const { vector } = await kindred.word({ word: "frog", with_vector: true });
    const byVectors = await kindred.expand({ vectors: [Float32Array.from(vector)], top: 1 });
    assert.equal(byVectors.terms[0].term, "frog");
  },
  getHeads: async () =>
    assert.deepEqual(
      (await kindred.heads()).heads.map(({ kind }) => kind),
      ["classifier", "expander"],
    ),
  postSimilarity: async () => {
    const { results } = await kindred.similarity({
      pairs: [
        ["king", "queen"],
        [
          ["red", "green", "blue"],
          ["purple", "orange"],
        ],
        ["king", "Qqq"],
      ],
    });
    assert.deepEqual(
      results.slice(0, 2).map(({ score }) => score),
      [0.6835325540668391, 0.6997823391455289],
    );
    assert.equal(results[2].error.code, "unknown_word");
  },
  postEmbed: async () => {
    const { results } = await kindred.embed({ texts: ["a small boat", "qqqzzz", "frog"] });
    assert.deepEqual([results[0].vector.length, results[0].used], [100, ["a", "small", "boat"]]);
    assert.equal(results[1].error.code, "unknown_word");
    const { neighbors } = await kindred.nearest({ text: "a small boat", k: 3, include_query: true });
    assert.deepEqual((await kindred.nearest({ vector: results[0].vector, k: 3 })).neighbors, neighbors);
  },
  postCount: async () => {
    const { count, rows } = await kindred.count({ filter: "key IN [frog, toad, frogg]" });
    assert.deepEqual([count, rows], [2, 30000]);
    await assert.rejects(kindred.count({ filter: "price < 80" }), { code: "invalid_filter" });
  },
  postOddOneOut: async () => {
    const { odd_one_out } = await kindred.oddOneOut({ words: ["breakfast", "cereal", "dinner", "lunch"] });
    assert.equal(odd_one_out, "cereal");
  },
  getWords: async () => {
    const { words } = await kindred.words({ prefix: "fro", limit: 3 });
    assert.deepEqual(
      words.map(({ word }) => word),
      ["from", "front", "frontier"],
    );
    const { row, norm, vector } = await kindred.word({ word: "frog" });
    assert.deepEqual([row, norm > 0, vector], [9070, true, undefined]);
  },
  getModel: async () =>
    assert.deepEqual(await kindred.model().then(({ name, rows, dim }) => [name, rows, dim]), ["demo", 30000, 100]),
  getModels: async () => assert.equal((await kindred.models()).default, "demo"),
  getVersion: async () => {
    const { version, commit, features } = await kindred.version();
    assert.match(version, /^\d+\.\d+\.\d+$/);
    assert.ok(commit.length >= 7 && Array.isArray(features), commit);
  },
  postReload: async () => {
    const { models, files } = await new Kindred({ baseUrl: closed.url, apiKey: admin.key }).reload();
    assert.deepEqual(
      models.map(({ name, outcome }) => [name, outcome]),
      [
        ["demo", "unchanged"],
        ["ödd", "unchanged"],
      ],
    );
    assert.ok(files.length >= 1, files);
  },
  getLive: async () => assert.deepEqual(await kindred.live(), { status: "live" }),
  getReady: async () => {
    const { status, models } = await kindred.ready();
    assert.deepEqual([status, models], ["ready", [{ model: "demo", replicas: 1, replicas_working: 1 }]]);
  },
  getMetrics: async () => assert.match(await kindred.metrics(), /^kindred_requests_total\{/m),
};

Object.assign(ASKED, {
  postModels: async () => {
    await table("made");
    const error = await rejection(table("made"));
    assert.deepEqual([error.status, error.code], [409, "model_exists"]);
  },
  deleteModel: async () => {
    const gone = await table("gone");
    assert.equal((await tables.deleteModel("gone")).outcome, "deleted");
    assert.ok((await rejection(gone.model())) instanceof NotFoundError);
    assert.throws(() => tables.deleteModel(".."), TypeError);
  },
  postRows: async () => {
    const put = await table("put");
    const rows = [
      { key: "a/b", vector: new Float32Array([1, 0.5]), attributes: { n: 5 } },
      { key: "é%20", vector: [0, 1] },
    ];
    const { position, inserted, durable } = await put.putRows({ rows });
    assert.deepEqual([position, inserted, durable], [1, 2, true]);
    const again = await Promise.all([1, 2, 3].map(() => put.putRows({ rows: rows.slice(0, 1) }, { idempotencyKey: "k" })));
    assert.deepEqual(again.map(({ repeated }) => repeated).sort(), [false, true, true]);
    assert.equal((await put.model()).position, 2);
    const bad = [{ key: "x", vector: [1, NaN] }, { key: "y", vector: [1, 2] }, { key: "z", vector: [1, 2, 3] }];
    const error = await rejection(put.putRows({ rows: bad }));
    assert.ok(error instanceof RequestError && error.code === "bad_rows");
    assert.deepEqual(error.problem.rows.map(({ index, key }) => [index, key]), [[0, "x"], [2, "z"]]);
    const { skipped } = await put.putRows({ rows: bad, on_error: "skip" });
    assert.deepEqual(skipped.map(({ key }) => key), ["x", "z"]);
    assert.throws(() => put.putRows({ rows }, { idempotencyKey: "a b" }), TypeError);
    const many = Array.from({ length: 100 }, (_, n) => ({ key: `v${n}\u2028é`, attributes: { n } }));
    const vectors = Float32Array.from({ length: 202 }, (_, n) => n / 3 + 1).subarray(2);
    const array = { rows: many, vectors, dim: 2, durability: "none" };
    const first = await put.putRows(array, { idempotencyKey: "v" });
    assert.deepEqual([first.inserted, first.durable, first.repeated], [100, false, false]);
    assert.equal((await put.putRows(array, { idempotencyKey: "v" })).repeated, true);
    const { vector, attributes } = await put.row({ key: many[99].key });
    assert.deepEqual([vector.map(Math.fround), attributes], [Array.from(vectors.subarray(198)), { n: 99 }]);
    vectors[3] = NaN;
    assert.equal((await rejection(put.putRows(array))).problem.rows[0].index, 1);
    assert.deepEqual((await put.putRows({ ...array, on_error: "skip" })).skipped.map(({ index }) => index), [1]);
    for (const wrong of [{ dim: 3 }, { dim: 0 }, { rows: many.slice(1) }]) {
      assert.throws(() => put.putRows({ ...array, ...wrong }), RangeError);
    }
    assert.throws(() => put.putRows({ ...array, vectors: new Float64Array(200) }), TypeError);
  },
  getSources: async () => {
    const followed = await table("followed");
    const row = { key: "a", vector: [1, 2] };
    const first = await followed.putRows({ rows: [row], delete: ["b"] }, { sourcePosition: "postgres:0/10" });
    assert.deepEqual((await followed.sources()).sources, [{ name: "postgres", position: "0/10" }]);
    const ifPosition = `${first.version}/0`;
    const late = await rejection(followed.putRows({ rows: [row] }, { ifPosition }));
    assert.equal(late.code, "position_changed");
    assert.equal((await rejection(followed.deleteRows({ filter: "key = a" }, { ifPosition }))).code, "position_changed");
    assert.equal((await followed.row({ key: "a" }, { minPosition: "postgres:0/10" })).position, 1);
    assert.throws(() => followed.putRows({ rows: [row] }, { sourcePosition: "a b:1" }), TypeError);
  },
  getRow: async () => {
    const one = await table("one");
    for (const key of Object.keys(odd)) {
      await one.putRows({ rows: [{ key, vector: [0.1, 2] }] });
      const row = await one.row({ key });
      assert.deepEqual([row.key, row.vector.map(Math.fround)], [key, [Math.fround(0.1), 2]]);
    }
    const change = await one.putRows({ rows: [{ key: "later", vector: [1, 2] }] });
    const after = one.after(change);
    assert.equal((await after.row({ key: "later" })).position, change.position);
    const next = { minPosition: `${change.version}/${change.position + 1}`, retries: 0 };
    assert.equal((await rejection(after.row({ key: "later" }, next))).code, "position_not_reached");
    const another = one.after({ ...change, version: "0" });
    const unmet = await rejection(another.nearest({ word: "later" }, { retries: 0 }));
    assert.equal(unmet.code, "position_not_reached");
    // It is a position of that client's model, and health has none.
    await Promise.all([another.withModel("one").row({ key: "later" }), another.live()]);
    await assert.rejects(() => one.row({ key: "later" }, { minPosition: "1" }), TypeError);
    const error = await rejection(one.row({ key: "nosuch" }));
    assert.ok(error instanceof NotFoundError && error.code === "no_such_row");
  },
  getRows: async () => {
    const paged = await table("paged");
    assert.deepEqual((await paged.rows()).rows, []);
    const keys = Array.from({ length: 25 }, (_, n) => `k${n}`);
    await paged.putRows({ rows: keys.map((key, n) => ({ key, vector: [1, n], attributes: { n } })) });
    const found = [];
    let after;
    do {
      const page = await paged.rows({ filter: "n < 20", limit: 8, with_vectors: false, after });
      found.push(...page.rows.map(({ key }) => key));
      after = page.next;
      await paged.putRows({ rows: [{ key: "k1", vector: [0, 1] }] });
    } while (after !== undefined);
    assert.deepEqual(found, keys.slice(0, 20));
  },
  postRowsDelete: async () => {
    const shrinking = await table("shrinking");
    await shrinking.putRows({ rows: ["a", "b", "c"].map((key, n) => ({ key, vector: [1, n], attributes: { n } })) });
    const { deleted, missing } = await shrinking.deleteRows({ keys: ["a", "x"] });
    assert.deepEqual([deleted, missing], [1, 1]);
    assert.equal((await shrinking.deleteRows({ filter: "n = 2" })).deleted, 1);
    assert.deepEqual((await shrinking.rows()).rows.map(({ key }) => key), ["b"]);
    assert.throws(() => shrinking.deleteRows({ filter: "n = 2" }, { idempotencyKey: "k" }), TypeError);
  },
  postFold: async () => {
    const folded = await table("folded");
    await folded.putRows({ rows: [{ key: "a", vector: [1, 0] }] });
    assert.equal((await folded.fold()).outcome, "folded");
    assert.equal((await folded.row({ key: "a" })).row, 0);
  },
});

/** Those without a method, and why. */
const NOT_ASKED = {
  getNearest: "POST has the same answers, and no limit of length",
  getAnalogy: "as before",
  getCount: "as before",
  getClassify: "as before",
  getExpand: "as before",
  getWord: "`/words?word=` has the same answer, and takes every word",
  postOpenAiEmbeddings: "for clients of OpenAI; `/embed` has the same vectors",
  postStart: "for clients of text-embeddings-inference",
  getInfo: "as before",
  getStartPage: "for browsers",
  getExplorerFile: "for browsers",
  getDocs: "for browsers",
  getDocsElsewhere: "for browsers",
  getDocsFile: "for browsers",
  getOpenApi: "for programs that make clients",
  deleteRows: "`/rows/delete` has the same answer",
  deleteRow: "as before",
  postSources: "for followers",
};

test("every operation of openapi.yaml has a method, or a reason", () => {
  const specification = readFileSync(new URL("../../../openapi.yaml", import.meta.url), "utf8");
  const operations = [...specification.matchAll(/^ +operationId: (\w+)$/gm)].map(([, name]) => name);
  assert.ok(operations.length > 20);
  assert.deepEqual([...Object.keys(ASKED), ...Object.keys(NOT_ASKED)].sort(), operations.sort());
});

for (const [operation, ask] of Object.entries(ASKED)) test(operation, ask);

test("a model's name can be anything, and so can words", async () => {
  const client = new Kindred({ baseUrl: closed.url, apiKey: reader.key, model: "ödd" });
  assert.equal((await client.model()).name, "ödd");
  for (const word of Object.keys(odd)) {
    assert.equal((await client.word({ word })).word, word);
    assert.equal((await client.nearest({ word, k: 1 })).model, "ödd");
  }
  assert.equal((await client.withModel("demo").heads()).model, "demo");
  assert.equal((await client.withModel("demo").nearest({ word: "frog", k: 1 })).neighbors[0].word, "frogs");
});

test("unknown words come with suggestions, and the id is in the error", async () => {
  const error = await rejection(kindred.analogy({ expression: "King - man + womann" }, { requestId: "mine-1" }));
  assert.ok(error instanceof UnknownWordError && error instanceof RequestError);
  assert.deepEqual(
    [error.status, error.code, error.requestId, error.problem.request_id],
    [404, "unknown_word", "mine-1", "mine-1"],
  );
  assert.deepEqual(
    error.unknown.map(({ word }) => word),
    ["King", "womann"],
  );
  assert.ok(error.unknown[1].suggestions.includes("woman"));
  assert.match(error.message, /the model does not have `King`.*\(404 unknown_word\)$/);
});

test("the service's errors have their classes", async () => {
  for (const [call, kind, code] of [
    [() => kindred.nearest({ word: "frog", k: 0 }), RequestError, "invalid_value"],
    [() => kindred.nearest({ word: "frog", K: 1 }), RequestError, "unknown_field"],
    [() => kindred.nearest({ vector: [1, 2] }), RequestError, "dimension_mismatch"],
    [() => kindred.nearest({ vector: Array(100).fill(NaN) }), RequestError, "invalid_value"],
    [() => kindred.analogy({ expression: "king man" }), RequestError, "bad_expression"],
    [() => kindred.withModel("none").nearest({ word: "frog" }), NotFoundError, "no_such_model"],
    [() => kindred.classify({ text: "x", head: "none" }), NotFoundError, "no_such_head"],
    [() => new Kindred({ baseUrl: `${service.url}/none/` }).models(), NotFoundError, "no_such_route"],
    [() => new Kindred({ baseUrl: closed.url }).models(), AccessError, "unauthorized"],
    [() => new Kindred({ baseUrl: closed.url, apiKey: reader.key }).reload(), AccessError, "forbidden"],
  ]) {
    const error = await rejection(call());
    assert.equal(error.constructor, kind, `${code}: ${error}`);
    assert.equal(error.code, code);
    assert.match(error.requestId, /^[0-9a-f]{16}$/);
  }
});

test("answers have a request id and timings, and a timeout over the service's own is no error", async () => {
  const answer = await kindred.nearest({ word: "frog" }, { requestId: "mine-2", timeoutMs: 2 ** 31 - 1 });
  const { requestId, attempts, serverTiming } = metadata(answer);
  assert.deepEqual([requestId, attempts], ["mine-2", 1]);
  assert.match(serverTiming, /^queue;dur=/);
});

test("a timeout ends long work", async () => {
  const queries = Array(1024).fill({ expression: "king - man + woman" });
  const began = performance.now();
  const error = await rejection(kindred.analogy({ queries, explain: true }, { timeoutMs: 100 }));
  assert.ok(error instanceof TimeoutError, `${error}`);
  assert.ok(performance.now() - began < 5000);
});

test("a draining service is busy", async () => {
  const stopping = await serve();
  const client = new Kindred({ baseUrl: stopping.url, retries: 0 });
  await client.live();
  stopping.signal("SIGTERM");
  // First the kept connection says so, then nobody listens any more.
  const errors = await Promise.all(Array.from({ length: 5 }, () => rejection(client.ready())));
  for (const error of errors) assert.ok(error instanceof BusyError || error.name === "ConnectionError", `${error}`);
  await stopping.stop();
});
