/** Analogies: the neighbours of an expression, and each term's contribution to each score. */

import { ask } from "./api.js";
import { ofWord } from "./address.js";
import { count, make, number, within } from "./dom.js";
import { attributesTable, wanted } from "./filter.js";
import { NONE, bar, options, ranked, row } from "./neighbours.js";

/** The number of colours. Each is there solid and striped, and all further terms look the same: none looks like another. */
const COLOURS = 6;
const DISTINCT = 2 * COLOURS;

/** Requests the neighbours; returns what every view returns (see neighbours.js). */
export async function find(question, signal) {
  const { analogy: expression, method, model } = question;
  const body = { expression, ...(method && { method }), ...options(question), ...wanted(question), explain: true };
  const found = await ask("analogy", { body, model, signal });
  const { neighbors, inputs } = found.answer;
  const best = neighbors[0];
  const isProduct = best?.terms.some((term) => term.factor !== undefined);
  const { columns, cells } = attributesTable(neighbors);
  const part = (term) => (isProduct ? term.factor : term.contribution);
  return {
    ...found,
    title: `${expression} ≈`,
    content: [
      best ? (isProduct ? make("p", { class: "legend" }, "Each score is the product of its terms' factors.") : legend(best.terms)) : null,
      isProduct ? products(neighbors, question) : list(neighbors, question),
      make("p", { class: "note" }, leftOut(inputs, question)),
    ],
    status: best ? `${within(expression)} is nearest to ${within(best.word)}, ${number(best.score, 2)}` : NONE,
    table: {
      columns: ["word", "score", "row", ...columns, ...(best?.terms ?? []).map((term) => `${isProduct ? "factor" : "contribution"} of ${signed(term)}`)],
      rows: neighbors.map((hit) => [hit.word, hit.score, hit.row, ...cells(hit), ...hit.terms.map(part)]),
    },
    // Only the sum of the terms is a vector, with a place among the words.
    center: method ? null : { label: expression, scores: [...inputs, ...neighbors].map(({ score }) => score) },
    asked: inputs.map((input) => input.word),
    hits: neighbors.map((hit) => hit.word),
  };
}

/** The look of a term: its colour, solid or striped. */
function look(index) {
  if (index >= DISTINCT) return "term-rest";
  return `term-${index % COLOURS}${index < COLOURS ? "" : " striped"}`;
}

/** The legend of the terms' colours. */
function legend(terms) {
  const names = terms.slice(0, DISTINCT).map((term, index) => make("li", { class: look(index) }, signed(term)));
  const rest = terms.length - names.length;
  if (rest > 0) names.push(make("li", { class: look(DISTINCT) }, `${rest} further ${rest === 1 ? "term" : "terms"}`));
  return make(
    "div",
    { class: "terms" },
    make("p", { class: "legend" }, "Each score is the sum of its terms' contributions. Negative ones are left of the line."),
    make("ul", {}, names),
  );
}

function signed({ word, weight }) {
  if (weight === 1) return `+ ${word}`;
  if (weight === -1) return `− ${word}`;
  return `${weight < 0 ? "−" : "+"} ${Math.abs(weight)} × ${word}`;
}

function list(hits, question) {
  const sum = (terms, sign) =>
    terms.reduce((sum, { contribution }) => sum + Math.max(sign * contribution, 0), 0);
  const most = Math.max(...hits.map((hit) => sum(hit.terms, 1)));
  const least = Math.max(...hits.map((hit) => sum(hit.terms, -1)));
  const rows = hits.map((hit) => {
    // At most one part for each look, however many terms there are.
    const side = (sign) => {
      const shares = hit.terms.map((term) => Math.max(sign * term.contribution, 0));
      const rest = shares.slice(DISTINCT).reduce((sum, share) => sum + share, 0);
      const parts = [...shares.slice(0, DISTINCT), rest];
      return parts.map((share, index) => (share > 0 ? make("i", { class: look(index), "--share": share / (most + least) }) : null));
    };
    const picture = make(
      "span",
      { class: "shares", "aria-hidden": "true", "--zero": least / (most + least) },
      make("span", { class: "take" }, side(-1)),
      make("span", { class: "give" }, side(1)),
    );
    const shares = hit.terms.map((term) => `${signed(term)}: ${number(term.contribution, 2)}`).join(" · ");
    return row(hit, question, picture, make("small", { class: "share-list" }, shares));
  });
  return ranked(rows, "hits with-shares");
}

/** Neighbours by a method that multiplies: bars as long as the scores, and the factors. */
function products(hits, question) {
  const most = Math.max(...hits.map((hit) => hit.score), Number.MIN_VALUE);
  const rows = hits.map((hit) => {
    const factors = hit.terms.map((term) => `${signed(term)}: ×${number(term.factor, 2)}`).join(" · ");
    return row(hit, question, bar(hit.score / most), make("small", { class: "share-list" }, factors));
  });
  return ranked(rows, "hits with-shares");
}

/** The ranks that the expression's own, excluded words would have. */
function leftOut(inputs, question) {
  const place = ({ score, rank }) => (score === null || rank === null ? " would have no rank" : ` would have rank ${count(rank)} with ${number(score)}`);
  const parts = inputs.flatMap((input, index) => [
    index > 0 ? "; " : "",
    make("a", { href: ofWord(input.word, question) }, input.word),
    place(input),
  ]);
  return ["Excluded, because they are in the query: ", ...parts, "."];
}
