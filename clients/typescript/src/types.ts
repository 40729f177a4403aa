/** The names of requests and answers, made from the generated types: with exactly one target, and with known results. */

import type { components, operations } from "./generated.js";

type Schemas = components["schemas"];

/** One of these, without the fields of the others. */
type OnlyOne<Shape, All extends PropertyKey = KeyOf<Shape>> = Shape extends unknown
  ? Shape & { [Other in Exclude<All, keyof Shape>]?: never }
  : never;
type KeyOf<Shape> = Shape extends unknown ? keyof Shape : never;

/** The body of an answer with status 200. */
type Answered<Operation extends keyof operations> = operations[Operation] extends {
  responses: { 200: { content: { "application/json": infer Body } } };
}
  ? Body
  : never;

/** The same lists, to be read only: so constants can be sent too. */
type Sendable<Value> = Value extends readonly (infer Item)[] ? readonly Sendable<Item>[] : Value;
type AllSendable<Shape> = { [Name in keyof Shape]: Sendable<Shape[Name]> };

/** One finite number per dimension of the model. */
export type Vector = readonly number[] | Float32Array | Float64Array;
/** A word with weight 1, or a word and its weight. */
export type WeightedWord = Schemas["WeightedWord"];
/** A word with its score and row; with its vector or terms, if they were asked for. */
export type Neighbor = Schemas["Neighbor"];
/** A word with its score and rank; `rank` is null for a word that a filter excludes. */
export type RankedWord = Schemas["RankedWord"];
/** A model that is served: name, version, size, engine and source. */
export type Model = Schemas["Model"];
/** A classifier or an expander; `kind` tells which. */
export type Head = Schemas["Head"];

// ---- Errors.

/** Problem details (RFC 9457). */
export type Problem = Omit<Schemas["Problem"], "code" | "status"> & { code: ProblemCode; status: number };
/** The codes of this version; a later service may have more. */
export type ProblemCode = Schemas["Problem"]["code"] | (string & {});
/** A word that the model does not have, with similarly spelt ones that it has. */
export type UnknownWord = Schemas["UnknownWord"];

/** An item of a batch's `results`: what was asked for, or an `error`; see `errorOf`. */
export type Result<Found> = (Found & { error?: never }) | { error: Problem };

// ---- Searches.

type Word = { word: string };
type Text = { text: string };
type OfVector = { vector: Vector };
type Expression = { expression: string };
type Positive = { positive: readonly WeightedWord[] };
type Negative = { negative: readonly WeightedWord[] };
/** The words of an analogy: an expression, or lists of which one may be missing. */
type Sum =
  | (Expression & { positive?: never; negative?: never })
  | (((Positive & Partial<Negative>) | (Negative & Partial<Positive>)) & { expression?: never });

type NearestTarget = OnlyOne<Word | OfVector | Text>;
type NoTarget = { word?: never; text?: never; vector?: never };
type NoSum = { expression?: never; positive?: never; negative?: never };

/** The options of a search; openapi.yaml says what each does. */
export type NearestOptions = AllSendable<Omit<Schemas["NearestQuery"], "word" | "vector" | "text">>;
/** The options of an analogy: those of a search, and the method. */
export type AnalogyOptions = AllSendable<Omit<Schemas["AnalogyQuery"], "expression" | "positive" | "negative">>;

/** A query for the neighbours of a word, a text or a vector. */
export type NearestQuery = NearestTarget & NearestOptions & { queries?: never };
/** Up to 1,024 queries; the options beside them are their defaults. */
export type NearestBatch = NearestOptions & { queries: readonly NearestQuery[] } & NoTarget;
/** A query for the neighbours of a sum of words. */
export type AnalogyQuery = Sum & AnalogyOptions & { queries?: never };
/** Up to 1,024 queries; the options beside them are their defaults. */
export type AnalogyBatch = AnalogyOptions & { queries: readonly AnalogyQuery[] } & NoSum;

/** The neighbours, best first. For texts also which words were used and skipped. */
export type SearchAnswer = Schemas["SingleAnswer"];
/** One result for each query, in their order. */
export type SearchBatchAnswer = Omit<Schemas["BatchAnswer"], "results"> & { results: Result<Schemas["ItemFound"]>[] };

type RankOptions = AllSendable<Omit<Schemas["RankRequest"], "words" | "method" | "timeout_ms" | keyof NoTarget | keyof NoSum>>;
/** Words to rank among the neighbours of a word, a text, a vector or a sum of words. `method` is only for sums. */
export type RankRequest = RankOptions & { words: readonly string[] } & (
    | (NearestTarget & NoSum & { method?: never })
    | (Sum & NoTarget & { method?: Schemas["Method"] })
  );
/** Scores and ranks, in the order of `words`. */
export type RankAnswer = Schemas["RankAnswer"];

// ---- Words.

/** A filter. */
export type CountRequest = Schemas["CountRequest"];
/** How many rows meet a filter, and how many there are. */
export type CountAnswer = Schemas["CountAnswer"];
/** A word or a set of words. */
export type Side = string | readonly string[];
/** Up to 1,024 pairs. */
export type SimilarityRequest = { pairs: readonly (readonly [Side, Side])[] } & Pick<Schemas["SimilarityRequest"], "unknown">;
/** One result for each pair, in their order. */
export type SimilarityAnswer = Omit<Schemas["SimilarityAnswer"], "results"> & { results: Result<Schemas["PairCompared"]>[] };
/** Up to 1,024 texts. */
export type EmbedRequest = AllSendable<Omit<Schemas["EmbedRequest"], "timeout_ms">>;
/** One result for each text, in their order. */
export type EmbedAnswer = Omit<Schemas["EmbedAnswer"], "results"> & { results: Result<Schemas["TextEmbedded"]>[] };
/** 3 to 256 words. */
export type OddOneOutRequest = AllSendable<Schemas["OddOneOutRequest"]>;
/** The odd one, and all words by their similarity to the mean of all. */
export type OddOneOutAnswer = Schemas["OddOneOutAnswer"];
/** The first words with a prefix, at most `limit`. */
export type WordsRequest = { prefix: string; limit?: number };
/** Words with their rows, by row. */
export type WordsAnswer = Schemas["WordList"];
/** A word, and whether its vector is wanted. */
export type WordRequest = { word: string; with_vector?: boolean };
/** Row, norm, vector and similarly spelt words. */
export type WordAnswer = Schemas["WordAnswer"];

// ---- Heads.

/** A text, or its words one by one. */
export type TextOrWords = string | readonly string[];

type ClassifyOptions = Omit<Schemas["ClassifyRequest"], "text" | "texts" | "timeout_ms">;
/** A text to classify. */
export type ClassifyRequest = ClassifyOptions & { text: TextOrWords; texts?: never };
/** Up to 1,024 texts. */
export type ClassifyBatch = ClassifyOptions & { texts: readonly TextOrWords[]; text?: never };
type OfOne<Answer> = Exclude<Answer, { results: unknown }>;
type OfAll<Answer> = Extract<Answer, { results: unknown }>;
/** Labels with probabilities, the most probable first. */
export type ClassifyAnswer = OfOne<Schemas["ClassifyAnswer"]>;
/** One result for each text, in their order. */
export type ClassifyBatchAnswer = Omit<OfAll<Schemas["ClassifyAnswer"]>, "results"> & {
  results: Result<Omit<ClassifyAnswer, "model" | "version" | "head">>[];
};

/** The forms of a text's terms. The answer has a field of this name. */
export type ExpandFormat = NonNullable<Schemas["ExpandRequest"]["format"]>;
type OfTokens = { vectors: readonly Vector[] };
type ExpandOptions<Format> = Omit<Schemas["ExpandRequest"], "text" | "vectors" | "texts" | "format" | "timeout_ms"> & {
  format?: Format;
};
/** A text, or the vectors of its tokens. */
export type ExpandRequest<Format extends ExpandFormat = "terms"> = ExpandOptions<Format> &
  OnlyOne<{ text: TextOrWords } | OfTokens> & { texts?: never };
/** Up to 1,024 texts; each may be given as the vectors of its tokens. */
export type ExpandBatch<Format extends ExpandFormat = "terms"> = ExpandOptions<Format> & {
  texts: readonly (TextOrWords | OfTokens)[];
  text?: never;
  vectors?: never;
};
type OneExpanded = OfOne<Schemas["ExpandAnswer"]>;
type Expanded<Format extends ExpandFormat> = Pick<OneExpanded, "unknown" | "cut"> &
  (Format extends ExpandFormat ? Required<Pick<OneExpanded, Format>> : never);
/** The terms, in a field named after the format. */
export type ExpandAnswer<Format extends ExpandFormat = "terms"> = Pick<OneExpanded, "model" | "version" | "head"> &
  Expanded<Format>;
/** One result for each text, in their order. */
export type ExpandBatchAnswer<Format extends ExpandFormat = "terms"> = Pick<OneExpanded, "model" | "version" | "head"> & {
  results: Result<Expanded<Format>>[];
};
/** The heads of a model. */
export type HeadsAnswer = Answered<"getHeads">;

// ---- Tables.

/** A table to make: its name, dimension, metric, and the types of its attributes. */
export type TableRequest = Omit<Schemas["TableRequest"], "metric"> & Partial<Pick<Schemas["TableRequest"], "metric">>;
type BesideVector = Omit<Schemas["TableRow"], "vector" | "text">;
/** A row to put, with its vector or the text that is to become one. */
export type TableRow = BesideVector & ({ vector: Vector; text?: never } | { text: string; vector?: never });
/** Rows to put, all together or none. */
export type PutRowsRequest = { rows: readonly TableRow[] } & Partial<
  Pick<Schemas["RowsRequest"], "delete" | "on_error" | "durability" | "timeout_ms">
>;
/** Rows to put whose vectors are one array, row after row, with `dim` components each. */
export type PutArrayRequest = Omit<PutRowsRequest, "rows" | "delete" | "timeout_ms"> & {
  rows: readonly BesideVector[];
  vectors: Float32Array;
  dim: number;
};
type DeleteOptions = Partial<Pick<Schemas["DeleteRequest"], "durability" | "timeout_ms">>;
/** Rows to delete: by their keys, or all that meet a filter. */
export type DeleteRowsRequest = DeleteOptions &
  ({ keys: readonly string[]; filter?: never } | { filter: string; keys?: never });
/** The effect of a change. */
export type ChangeAnswer = Schemas["ChangeAnswer"];
/** The key of a row. */
export type RowRequest = { key: string };
/** A row as it was put, with its number. */
export type RowAnswer = Schemas["RowAnswer"];
/** A page of rows: `after` is the `next` of the page before. */
export type RowsRequest = { filter?: string; after?: string; limit?: number; with_vectors?: boolean };
/** Rows in their order; without `next`, the page is the last. */
export type RowsAnswer = Schemas["RowList"];
/** The systems that a table follows. */
export type SourcesAnswer = Schemas["SourcesAnswer"];
/** The outcome of a fold. */
export type FoldAnswer = Schemas["FoldAnswer"];
/** A table is not served any more. */
export type DeletedAnswer = Answered<"deleteModel">;

// ---- The service.

/** All models, the default model first. */
export type ModelsAnswer = Answered<"getModels">;
/** The build of the program: version, commit, features. */
export type VersionAnswer = Answered<"getVersion">;
/** Always the same. */
export type LiveAnswer = Answered<"getLive">;
/** How many replicas of each model work. */
export type ReadyAnswer = Answered<"getReady">;
/** The outcome for each model, and the files that were read. */
export type ReloadAnswer = Answered<"postReload">;
