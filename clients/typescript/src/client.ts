/** The client: a method for each route. */

import {
  checked,
  checkIdempotencyKey,
  checkPositions,
  checkModel,
  type CallOptions,
  type ChangeOptions,
  type ClientOptions,
  type Settings,
} from "./settings.js";
import { formOf } from "./arrays.js";
import { type Metadata, parse, randomId, type Request, send } from "./transport.js";
import type * as Types from "./types.js";

/** What came with each answer, as long as the answer lives. */
const received = new WeakMap<object, Metadata>();

/**
 * A client of one service, and of one of its models. It has no state but its options, so one can serve a whole program.
 *
 * Requests and answers are the bodies of the HTTP API, with the same names, so openapi.yaml describes every field. A
 * method takes either one query or a batch (`queries`, `texts`), and has the answer of the one or the other. An item of a
 * batch's `results` that failed has an `error` instead, see {@link errorOf}.
 *
 * All methods reject with a {@link KindredError}, or with the reason of their `signal`. All but `reload`, `live` and
 * `ready` are sent again if no answer arrives, or one with the status 429 or 503: after its `Retry-After`, and a random
 * back-off. This is safe for POST too: questions only ask, and a change by keys has an `Idempotency-Key`, so that it is done
 * once. The other changes of tables are sent again only after 429.
 *
 * @example
 * const kindred = new Kindred({ baseUrl: "http://127.0.0.1:8080" });
 * const { neighbors } = await kindred.nearest({ word: "frog", k: 3 });
 * console.log(neighbors.map(({ word }) => word)); // [ 'frogs', 'toad', 'salamander' ]
 */
export class Kindred {
  // Private, so that nothing that prints a client prints its key.
  readonly #options: ClientOptions;
  readonly #settings: Settings;

  /**
   * @throws {TypeError} for an unknown option, or a URL, a model's name or a key that can't be sent
   * @throws {RangeError} for a number that is out of range
   */
  constructor(options: ClientOptions) {
    this.#options = { ...options };
    this.#settings = checked(options);
  }

  /**
   * A client of another model of the service, with the same options.
   *
   * @example
   * const { default: name } = await kindred.models();
   * const { rows, dim } = await kindred.withModel(name).model();
   * console.log(`${name}: ${rows} × ${dim}`); // demo: 30000 × 100
   */
  withModel(model: string): Kindred {
    // Without a name, the default model would answer.
    checkModel(model);
    // A position is one of the model before.
    const { minPosition: _, ...options } = this.#options;
    return new Kindred({ ...options, model });
  }

  /**
   * A client whose answers are about the rows after a change, or later ones, whatever service of several answers. A service
   * of one process needs none: there, every question that is asked after the answer to a change sees it.
   */
  after(change: Pick<Types.ChangeAnswer, "version" | "position">): Kindred {
    return new Kindred({ ...this.#options, minPosition: `${change.version}/${change.position}` });
  }

  /**
   * The words nearest to a `word`, a `text` or a `vector`, or to each of `queries`, best first.
   *
   * @example
   * const { neighbors, skipped } = await kindred.nearest({ text: "Roses, violets and qwertyish!", k: 1 });
   * console.log(neighbors[0].word, skipped); // lilies [ 'qwertyish' ]
   *
   * @example
   * const { results } = await kindred.nearest({ queries: [{ word: "ocean" }, { word: "Frog" }], k: 1 });
   * for (const { neighbors, error } of results) console.log(error ? error.code : neighbors[0].word);
   * // oceans
   * // unknown_word
   */
  nearest(query: Types.NearestQuery, options?: CallOptions): Promise<Types.SearchAnswer>;
  nearest(batch: Types.NearestBatch, options?: CallOptions): Promise<Types.SearchBatchAnswer>;
  nearest(body: object, options?: CallOptions): Promise<never> {
    return this.#ofModel({ path: "nearest", body }, options);
  }

  /**
   * The words nearest to a sum of words: an `expression`, or lists of `positive` and `negative` words; or to each of
   * `queries`. `method` is `3cosadd` (the default), `3cosmul` or `pairdirection`.
   *
   * @example
   * const { neighbors } = await kindred.analogy({ expression: "king - man + woman", k: 1 });
   * console.log(neighbors[0].word, neighbors[0].score); // queen 0.8176588653993436
   *
   * @example
   * const { neighbors } = await kindred.analogy({ positive: ["paris", "japan"], negative: ["france"], k: 1 });
   * console.log(neighbors[0].word); // tokyo
   */
  analogy(query: Types.AnalogyQuery, options?: CallOptions): Promise<Types.SearchAnswer>;
  analogy(batch: Types.AnalogyBatch, options?: CallOptions): Promise<Types.SearchBatchAnswer>;
  analogy(body: object, options?: CallOptions): Promise<never> {
    return this.#ofModel({ path: "analogy", body }, options);
  }

  /**
   * Scores and exact ranks of given `words` among the neighbours of a query of `nearest` or `analogy`.
   *
   * @example
   * const { ranked } = await kindred.rank({ word: "frog", words: ["toad", "king"] });
   * console.log(ranked.map(({ rank }) => rank)); // [ 2, 26403 ]
   */
  rank(body: Types.RankRequest, options?: CallOptions): Promise<Types.RankAnswer> {
    return this.#ofModel({ path: "rank", body }, options);
  }

  /**
   * How many rows meet a filter.
   *
   * @example
   * const { count, rows } = await kindred.count({ filter: "key IN [frog, toad, frogg]" });
   * console.log(count, rows); // 2 30000
   */
  count(body: Types.CountRequest, options?: CallOptions): Promise<Types.CountAnswer> {
    return this.#ofModel({ path: "count", body }, options);
  }

  /**
   * Cosine similarities of pairs of words, or of sets of words.
   *
   * @example
   * const { results } = await kindred.similarity({ pairs: [["king", "queen"], [["red", "green"], "purple"]] });
   * console.log(results[0].score); // 0.6835325540668391
   */
  similarity(body: Types.SimilarityRequest, options?: CallOptions): Promise<Types.SimilarityAnswer> {
    return this.#ofModel({ path: "similarity", body }, options);
  }

  /**
   * The vectors of texts: those that `nearest` searches for if it is given the texts.
   *
   * @example
   * const { results } = await kindred.embed({ texts: ["a small boat", "a ship"] });
   * console.log(results[0].vector.length); // 100
   */
  embed(body: Types.EmbedRequest, options?: CallOptions): Promise<Types.EmbedAnswer> {
    return this.#ofModel({ path: "embed", body }, options);
  }

  /**
   * The word that does not belong with the others.
   *
   * @example
   * const { odd_one_out } = await kindred.oddOneOut({ words: ["breakfast", "cereal", "dinner", "lunch"] });
   * console.log(odd_one_out); // cereal
   */
  oddOneOut(body: Types.OddOneOutRequest, options?: CallOptions): Promise<Types.OddOneOutAnswer> {
    return this.#ofModel({ path: "odd-one-out", body }, options);
  }

  /**
   * The labels that a head gives to a `text` or to each of `texts`, the most probable first.
   *
   * @example
   * const { labels } = await kindred.classify({ text: "a moving and funny film" });
   * console.log(labels[0].label); // positive
   */
  classify(request: Types.ClassifyRequest, options?: CallOptions): Promise<Types.ClassifyAnswer>;
  classify(batch: Types.ClassifyBatch, options?: CallOptions): Promise<Types.ClassifyBatchAnswer>;
  classify(body: object, options?: CallOptions): Promise<never> {
    return this.#ofModel({ path: "classify", body }, options);
  }

  /**
   * The terms that a `text` or each of `texts` implies, with weights, for a search engine. The answer has them in a field
   * named after the `format`; by default in `terms`.
   *
   * @example
   * const { terms } = await kindred.expand({ text: "cheap flights", top: 3 });
   * console.log(terms.map(({ term }) => term)); // [ 'cheap', 'flights', 'inexpensive' ]
   *
   * @example
   * const { results } = await kindred.expand({ texts: ["frog", "king"], top: 2, format: "impacts" });
   * console.log(results[0].impacts); // { frog: 42, frogs: 18 }
   */
  expand<Format extends Types.ExpandFormat = "terms">(
    request: Types.ExpandRequest<Format>,
    options?: CallOptions,
  ): Promise<Types.ExpandAnswer<Format>>;
  expand<Format extends Types.ExpandFormat = "terms">(
    batch: Types.ExpandBatch<Format>,
    options?: CallOptions,
  ): Promise<Types.ExpandBatchAnswer<Format>>;
  expand(body: object, options?: CallOptions): Promise<never> {
    return this.#ofModel({ path: "expand", body }, options);
  }

  /**
   * The heads of the model, and how they were made.
   *
   * @example
   * const { heads } = await kindred.heads();
   * console.log(heads.map(({ name, kind }) => `${name}: ${kind}`)); // [ 'sentiment: classifier', 'nearby: expander' ]
   */
  heads(options?: CallOptions): Promise<Types.HeadsAnswer> {
    return this.#ofModel({ path: "heads" }, options);
  }

  /**
   * The first words of the model that begin with a prefix: usually the most frequent ones.
   *
   * @example
   * const { words } = await kindred.words({ prefix: "fro", limit: 3 });
   * console.log(words.map(({ word }) => word)); // [ 'from', 'front', 'frontier' ]
   */
  words(request: Types.WordsRequest, options?: CallOptions): Promise<Types.WordsAnswer> {
    return this.#ofModel({ path: "words", parameters: { ...request } }, options);
  }

  /**
   * Row and norm of a word, its vector if requested, and words that are spelt similarly.
   *
   * @example
   * const { row, suggestions } = await kindred.word({ word: "frog" });
   * console.log(row, suggestions); // 9070 [ 'from', 'fog', 'fro', 'frogs' ]
   */
  word(request: Types.WordRequest, options?: CallOptions): Promise<Types.WordAnswer> {
    // As a parameter, because a path can't have every word: `..`, or one with a slash.
    return this.#ofModel({ path: "words", parameters: { ...request } }, options);
  }

  /** Name, version, size, engine and source of the model. */
  model(options?: CallOptions): Promise<Types.Model> {
    return this.#ofModel({ path: "model" }, options);
  }

  /** All models of the service, the default model first. */
  models(options?: CallOptions): Promise<Types.ModelsAnswer> {
    return this.#json({ path: "models" }, options);
  }

  /** Version, commit and features of the program that answers. */
  version(options?: CallOptions): Promise<Types.VersionAnswer> {
    return this.#json({ path: "version" }, options);
  }

  /** Whether the process responds. Never repeated unless `retries` says so here. */
  live(options: CallOptions = {}): Promise<Types.LiveAnswer> {
    return this.#json({ path: "health/live" }, { ...options, retries: options.retries ?? 0 });
  }

  /**
   * Whether queries are answered correctly; else it rejects with a {@link BusyError}. Never repeated unless `retries` says
   * so here.
   */
  ready(options: CallOptions = {}): Promise<Types.ReadyAnswer> {
    return this.#json({ path: "health/ready" }, { ...options, retries: options.retries ?? 0 });
  }

  /** The metrics, in the Prometheus text format. */
  async metrics(options: CallOptions = {}): Promise<string> {
    return (await send(this.#settings, { path: "metrics", accepts: "text/plain" }, options)).text;
  }

  /**
   * Loads models, keys and certificates again; needs an admin's key. The answer comes when everything is done, so it has
   * no timeout unless the options set one. It is never sent twice.
   */
  reload(options: Omit<CallOptions, "retries"> = {}): Promise<Types.ReloadAnswer> {
    const { timeoutMs = Infinity } = options;
    return this.#json({ path: "admin/reload", method: "POST" }, { ...options, timeoutMs, retries: 0 });
  }

  /** Makes a table without rows; {@link withModel} has a client of it. It is never done twice. */
  createModel(body: Types.TableRequest, options?: CallOptions): Promise<Types.Model> {
    return this.#json({ path: "models", body, isDoneOnce: true }, options);
  }

  /** Deletes a table with all its rows. It is never done twice. */
  deleteModel(name: string, options?: CallOptions): Promise<Types.DeletedAnswer> {
    checkModel(name);
    return this.#json({ path: `models/${encodeURIComponent(name)}`, method: "DELETE", isDoneOnce: true }, options);
  }

  /**
   * Inserts rows, and replaces those whose key the table has: all together, or none. They are on disk then. Bad rows are named
   * in `rows` of the error's `problem`, or with `on_error: "skip"` in `skipped`.
   *
   * With `vectors`, one array for all rows, they are sent in binary, which takes less time and memory.
   *
   * @throws {RangeError} if there are not `dim` components of `vectors` for each row
   */
  putRows(body: Types.PutRowsRequest | Types.PutArrayRequest, options: ChangeOptions = {}): Promise<Types.ChangeAnswer> {
    if (!("vectors" in body)) return this.#changeOnce({ path: "rows", body }, options);
    const { rows, vectors, dim, ...parameters } = body;
    return this.#changeOnce({ path: "rows", body: formOf(rows, vectors, dim), parameters }, options);
  }

  /** Deletes the rows of some `keys`, or all that meet a `filter`. By a filter it is never done twice. */
  deleteRows(body: Types.DeleteRowsRequest, options: ChangeOptions = {}): Promise<Types.ChangeAnswer> {
    if (body.filter === undefined) return this.#changeOnce({ path: "rows/delete", body }, options);
    if (options.idempotencyKey !== undefined) {
      throw new TypeError("idempotencyKey is for changes by keys: other rows may meet the filter when it is sent again");
    }
    const { ifPosition, sourcePosition, ...others } = options;
    checkPositions({ ifPosition, sourcePosition });
    return this.#ofModel({ path: "rows/delete", body, isDoneOnce: true, ifPosition, sourcePosition }, others);
  }

  /** A row as it was put, by its key. */
  row(request: Types.RowRequest, options?: CallOptions): Promise<Types.RowAnswer> {
    // As a parameter, because a path can't have every key.
    return this.#ofModel({ path: "rows", parameters: { key: request.key } }, options);
  }

  /** Rows in their order, or those that meet a filter, a page at a time; all pages are of the rows at the first one. */
  rows(request: Types.RowsRequest = {}, options?: CallOptions): Promise<Types.RowsAnswer> {
    return this.#ofModel({ path: "rows", parameters: { ...request } }, options);
  }

  /** The systems that a table follows, such as PostgreSQL, and how far its rows have come there. */
  sources(options?: CallOptions): Promise<Types.SourcesAnswer> {
    return this.#ofModel({ path: "sources" }, options);
  }

  /** Folds the changes of a table into a new base; needs an admin's key. */
  fold(options?: CallOptions): Promise<Types.FoldAnswer> {
    return this.#ofModel({ path: "fold", method: "POST", isDoneOnce: true }, options);
  }

  /** Sends a change with a key, so that it is done once. */
  #changeOnce<Answer extends object>(request: Request, options: ChangeOptions): Promise<Answer> {
    const { idempotencyKey = randomId() + randomId(), ifPosition, sourcePosition, ...others } = options;
    checkIdempotencyKey(idempotencyKey);
    checkPositions({ ifPosition, sourcePosition });
    return this.#ofModel({ ...request, idempotencyKey, ifPosition, sourcePosition }, others);
  }

  /** Asks this client's model. */
  #ofModel<Answer extends object>(request: Request, options?: CallOptions): Promise<Answer> {
    const { model } = this.#settings;
    const path = model === undefined ? request.path : `models/${encodeURIComponent(model)}/${request.path}`;
    return this.#json({ ...request, path, isOfModel: true }, options);
  }

  async #json<Answer extends object>(request: Request, options: CallOptions = {}): Promise<Answer> {
    const answered = await send(this.#settings, request, options);
    const answer = parse(answered);
    received.set(answer, answered.metadata);
    return answer as Answer;
  }
}

/**
 * What came with an answer: the request's id, how often it was sent, and the service's timings.
 *
 * @param answer exactly as a method returned it: copies have none
 *
 * @example
 * const answer = await kindred.nearest({ word: "frog" }, { requestId: "frogs-1" });
 * console.log(metadata(answer).requestId); // frogs-1
 */
export function metadata(answer: object): Metadata | undefined {
  return received.get(answer);
}
