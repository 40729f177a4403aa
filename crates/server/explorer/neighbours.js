/** Neighbours of a word or a text: a ranked list with bars. */

import { ask } from "./api.js";
import { ofWord } from "./address.js";
import { count, make, number, within } from "./dom.js";
import { attributesLine, attributesTable, wanted } from "./filter.js";
import { isWord, wordsIn } from "./words.js";

/** The options common to all queries, as the service names them. */
export function options({ k, limit, fold, exclude, filter }) {
  const excluded = wordsIn(exclude ?? "");
  return {
    k, ...(limit && { vocab_limit: limit }), ...(fold && { fold_case: true }), ...(excluded.length > 0 && { exclude: excluded }),
    ...(filter && { filter }),
  };
}

/**
 * Requests the neighbours.
 * @returns what every view returns: `title`, `content`, `status` (a sentence for screen readers), `table` (the `columns` and
 *   `rows` that can be saved), `timings`, `curl`, and for map and matrix, if there are any: `asked` and `hits`, the words
 *   of the query and of the answer; `center`, the query as a point of its own with its scores for all of them, or null if
 *   it is a word
 */
export async function find(question, signal) {
  const { kind, word, text, model } = question;
  const parameters = kind === "text" ? { text } : { word };
  const found = await ask("nearest", { parameters: { ...parameters, ...options(question), ...wanted(question) }, model, signal });
  const { neighbors } = found.answer;
  const parts = found.answer.subwords ?? [];
  // A point of its own, as a text is.
  const isRow = kind !== "text" && parts.length === 0;
  const first = neighbors.slice(0, 3).map((hit) => `${within(hit.word)} ${number(hit.score, 2)}`);
  const { columns, cells } = attributesTable(neighbors);
  const name = within(kind === "text" ? text : word);
  return {
    ...found,
    title: kind === "text" ? `Nearest to “${text}”` : `Nearest to “${word}”`,
    content: [
      notesOnReading(found.answer),
      ranked(neighbors.map((hit) => row(hit, question, bar(hit.score)))),
    ],
    status: first.length > 0 ? `${neighbors.length} neighbours of ${name}: ${first.join(", ")} …` : `No neighbours of ${name}`,
    table: { columns: ["word", "score", "row", ...columns], rows: neighbors.map((hit) => [hit.word, hit.score, hit.row, ...cells(hit)]) },
    center: isRow ? null : { label: `“${kind === "text" ? text : word}”`, scores: neighbors.map((hit) => hit.score) },
    asked: isRow ? [word] : [],
    hits: neighbors.map((hit) => hit.word),
  };
}

/** Notes on what of a query the model does not have, or has not read. */
export function notesOnReading({ skipped = [], subwords = [], tokens }) {
  const words = skipped.filter(isWord);
  const unknown = skipped.length === 0 ? (tokens?.unknown ?? 0) : 0;
  return [
    words.length > 0 ? `Not in the model: ${words.join(", ")}.` : null,
    subwords.length > 0 ? `Not in the model, so with the vector of its parts: ${subwords.map(({ word }) => word).join(", ")}.` : null,
    unknown > 0 ? `${count(unknown)} of the text's tokens ${unknown === 1 ? "is" : "are"} not in the model.` : null,
    tokens?.truncated ? `The text is too long for this model. Only its first ${count(tokens.count)} tokens were read.` : null,
  ].map((note) => note && make("p", { class: "note" }, note));
}

/** The message if there is no answer. */
export const NONE = "No word passes these filters.";

/** A ranked list of lines made by `row`. */
export function ranked(rows, kind = "hits") {
  return rows.length === 0 ? make("p", { class: "note" }, NONE) : make("ol", { class: kind }, rows);
}

/** One line of a list, with a bar for its score. */
export function row(hit, question, picture, note = null) {
  const title = `score ${hit.score}; frequency rank ${count(hit.row + 1)}`;
  return make(
    "li",
    { "data-word": hit.word, title },
    make("a", { href: ofWord(hit.word, question) }, hit.word),
    picture,
    make("span", { class: "score" }, number(hit.score)),
    note,
    attributesLine(hit.attributes),
  );
}

/** A bar from 0; a negative score has none. */
export function bar(score) {
  return make("span", { class: "bar", "aria-hidden": "true" }, make("i", { "--share": Math.max(score, 0) }));
}
