/** Analogies: the neighbours of an expression, and each term's contribution to each score. */

import { ask } from "./api.js";
import { ofWord } from "./address.js";
import { count, make, number, within } from "./dom.js";
import { NONE, options, ranked, row } from "./neighbours.js";

/** The number of distinct colours; further terms start again with the first. */
const COLOURS = 6;

/** Requests the neighbours; returns what every view returns (see neighbours.js). */
export async function find(question, signal) {
  const { analogy: expression, model } = question;
  const body = { expression, ...options(question), explain: true };
  const found = await ask("analogy", { body, model, signal });
  const { neighbors, inputs } = found.answer;
  const best = neighbors[0];
  return {
    ...found,
    title: `${expression} ≈`,
    content: [
      best ? legend(best.terms) : null,
      list(neighbors, question),
      make("p", { class: "note" }, leftOut(inputs, question)),
    ],
    status: best ? `${within(expression)} is nearest to ${within(best.word)}, ${number(best.score, 2)}` : NONE,
    center: {
      label: expression,
      scores: [...inputs.map((input) => input.score), ...neighbors.map((hit) => hit.score)],
    },
    asked: inputs.map((input) => input.word),
    hits: neighbors.map((hit) => hit.word),
  };
}

/** The legend of the terms' colours. */
function legend(terms) {
  const names = terms.map((term, index) => make("li", { class: `term-${index % COLOURS}` }, signed(term)));
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
    const side = (sign) =>
      hit.terms.map((term, index) =>
        sign * term.contribution > 0
          ? make("i", { class: `term-${index % COLOURS}`, "--share": Math.abs(term.contribution) / (most + least) })
          : null,
      );
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

/** The ranks that the expression's own, excluded words would have. */
function leftOut(inputs, question) {
  const parts = inputs.flatMap(({ word, score, rank }, index) => [
    index > 0 ? "; " : "",
    make("a", { href: ofWord(word, question) }, word),
    ` would have rank ${count(rank)} with ${number(score)}`,
  ]);
  return ["Excluded, because they are in the query: ", ...parts, "."];
}
