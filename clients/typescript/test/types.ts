/** What compiles, and what must not: a line below `@ts-expect-error` that compiles is an error. */

import { BusyError, type CallOptions, errorOf, Kindred, KindredError, metadata, UnknownWordError } from "kindred-vectors";

const kindred = new Kindred({ baseUrl: new URL("http://127.0.0.1:8080"), apiKey: "key", fetch: globalThis.fetch });
const options: CallOptions = { signal: AbortSignal.timeout(1000), timeoutMs: 500, retries: 1, requestId: "a" };

export async function searches(): Promise<string[]> {
  const words = ["toad", "newt"] as const;
  const one = await kindred.nearest({ word: "frog", k: 3, exclude: words, fold_case: true }, options);
  const score: number = one.neighbors[0]!.score;
  const many = await kindred.nearest({
    k: 2,
    queries: [{ word: "a" }, { text: "b" }, { vector: new Float32Array(3) }, { vector: [1, 2] }],
  });
  for (const result of many.results) {
    // @ts-expect-error -- it may have failed
    result.neighbors.length;
    if (result.error) {
      const error = errorOf(result.error);
      if (error instanceof UnknownWordError) return error.unknown.flatMap(({ suggestions }) => suggestions);
    } else {
      return result.neighbors.map(({ word }) => word + score);
    }
  }
  // @ts-expect-error -- one answer has no results
  one.results;
  // @ts-expect-error -- a batch has no neighbours of its own
  many.neighbors;

  // @ts-expect-error -- two targets
  await kindred.nearest({ word: "frog", text: "frog" });
  // @ts-expect-error -- no target
  await kindred.nearest({ k: 3 });
  // @ts-expect-error -- no such option
  await kindred.nearest({ word: "frog", K: 3 });
  // @ts-expect-error -- an option of analogies
  await kindred.nearest({ word: "frog", method: "3cosmul" });
  // @ts-expect-error -- a target beside queries
  await kindred.nearest({ word: "frog", queries: [{ word: "a" }] });
  // @ts-expect-error -- the timeout is an option of the call
  await kindred.nearest({ word: "frog", timeout_ms: 3 });
  // @ts-expect-error -- a batch inside a batch
  await kindred.nearest({ queries: [{ queries: [] }] });
  // @ts-expect-error -- a text where a number belongs
  await kindred.nearest({ word: "frog", k: "3" });
  return [];
}

export async function analogies(): Promise<void> {
  await kindred.analogy({ expression: "king - man + woman", method: "3cosmul" });
  await kindred.analogy({ positive: ["king", { word: "woman", weight: 2 }], negative: ["man"] });
  await kindred.analogy({ negative: ["man"] });
  (await kindred.analogy({ queries: [{ expression: "a" }, { positive: ["b"] }], explain: true })).results.length;
  await kindred.rank({ word: "frog", words: ["toad"] });
  await kindred.rank({ expression: "a - b", words: ["c"], method: "pairdirection", vocab_limit: 10 });
  // @ts-expect-error -- an expression and lists
  await kindred.analogy({ expression: "a", positive: ["b"] });
  // @ts-expect-error -- nothing to add or subtract
  await kindred.analogy({ k: 3 });
  // @ts-expect-error -- no such method
  await kindred.analogy({ expression: "a", method: "4cosmul" });
  // @ts-expect-error -- no words to rank
  await kindred.rank({ word: "frog" });
  // @ts-expect-error -- methods are for sums
  await kindred.rank({ word: "frog", words: ["toad"], method: "3cosmul" });
  // @ts-expect-error -- two targets
  await kindred.rank({ word: "frog", expression: "a", words: ["toad"] });
}

export async function words(): Promise<void> {
  const { results } = await kindred.similarity({
    pairs: [
      ["a", "b"],
      [["c", "d"], "e"],
    ],
    unknown: "skip",
  });
  const embedded = await kindred.embed({ texts: ["a", "b"], unknown: "error" });
  const vectors: number[][] = embedded.results.map((result) => (result.error ? [] : result.vector));
  console.log(vectors);
  // @ts-expect-error -- no texts
  await kindred.embed({ texts: [1] });
  const scores: number[] = results.map((result) => (result.error ? 0 : result.score));
  const { odd_one_out } = await kindred.oddOneOut({ words: ["a", "b", "c"] as const });
  const { vector } = await kindred.word({ word: odd_one_out, with_vector: true });
  if (vector) await kindred.nearest({ vector });
  (await kindred.words({ prefix: "" })).words[0]?.row.toFixed(scores[0]);
  // @ts-expect-error -- three sides
  await kindred.similarity({ pairs: [["a", "b", "c"]] });
}

export async function heads(): Promise<void> {
  (await kindred.classify({ text: ["a", "film"], top: 1 })).labels[0]?.probability.toFixed();
  const labels = (await kindred.classify({ texts: ["a", ["b"]] })).results.map((result) =>
    result.error ? result.error.code : result.labels,
  );
  (await kindred.expand({ text: "a" })).terms.map(({ term }) => term);
  (await kindred.expand({ text: "a", format: "qdrant" })).qdrant.indices.length.toFixed(labels.length);
  (await kindred.expand({ vectors: [[1, 2], new Float32Array(2)], format: "vespa" })).vespa.cells;
  const batch = await kindred.expand({ texts: ["a", ["b"], { vectors: [[1]] }], format: "impacts" });
  batch.results.map((result) => (result.error ? {} : result.impacts));
  // @ts-expect-error -- another format was asked for
  (await kindred.expand({ text: "a", format: "qdrant" })).terms.length;
  // @ts-expect-error -- no such format
  await kindred.expand({ text: "a", format: "xml" });
  // @ts-expect-error -- one or several
  await kindred.classify({ text: "a", texts: ["b"] });
  for (const head of (await kindred.heads()).heads) {
    if (head.kind === "classifier") head.labels.length;
    else head.terms.toFixed();
  }
}

export async function tables(): Promise<void> {
  const vectors = new Float32Array([1, 2]);
  const change = await kindred.putRows({ rows: [{ key: "a", attributes: { n: 1 } }], vectors, dim: 2, on_error: "skip" });
  (await kindred.after(change).row({ key: "a" }, { minPosition: "a/1" })).vector;
  // @ts-expect-error -- float32 alone
  await kindred.putRows({ rows: [{ key: "a" }], vectors: new Float64Array(2), dim: 2 });
  // @ts-expect-error -- no dimension
  await kindred.putRows({ rows: [{ key: "a" }], vectors });
  // @ts-expect-error -- a row without a vector
  await kindred.putRows({ rows: [{ key: "a" }] });
}

export async function service(): Promise<string> {
  const { default: name, models } = await kindred.withModel("glove").models();
  const version: string | undefined = (await kindred.reload({ timeoutMs: Infinity })).models[0]?.version;
  const working: number | undefined = (await kindred.ready()).models[0]?.replicas_working;
  const live: "live" = (await kindred.live()).status;
  // @ts-expect-error -- a reload is never repeated
  await kindred.reload({ retries: 1 });
  // @ts-expect-error -- the address is needed
  new Kindred({});
  try {
    await kindred.model();
  } catch (error) {
    if (error instanceof BusyError && error.code === "queue_full")
      return `${error.retryAfter?.toFixed()} ${error.problem?.title}`;
    if (error instanceof KindredError) return error.requestId ?? "";
  }
  return [name, models.length, version, working, live, metadata(models)?.requestId.length, await kindred.metrics()].join();
}
