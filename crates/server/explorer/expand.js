/** Texts expanded: terms with their weights, and the text painted with the tokens that gave them. */

import { ask } from "./api.js";
import { ofWord } from "./address.js";
import { count, make, number, within } from "./dom.js";
import { headToAsk, loadHeads, note, notesOnReading, unknownIn } from "./heads.js";
import { paint, watch } from "./paint.js";

/** Requests the terms of a text; returns what every view returns (see neighbours.js), without map and matrix. */
export async function find(question, signal) {
  const { expand: text, k, model } = question;
  const heads = await loadHeads(question, question.head, signal);
  const name = headToAsk(question, heads);
  const body = { text, ...(name && { head: name }), top: k, explain: true };
  const found = await ask("expand", { body, model, signal });
  const head = heads.find((head) => head.name === found.answer.head);
  const { terms } = found.answer;
  const tokens = tokensOf(terms);
  const content = make(
    "div",
    { class: "expanded" },
    make("section", { class: "source" }, painted(text, tokens, unknownIn(found.answer)), notesOnReading(found.answer, head)),
    make("div", {}, list(terms, tokens, question), notes(found.answer, head, k)),
  );
  watch(content);
  return {
    ...found,
    title: `Terms of “${within(text)}”`,
    content: [content],
    status: terms.length > 0 ? `${within(text)}: ${terms.slice(0, 3).map(inWords).join(", ")}` : `${within(text)}: no terms`,
    table: { columns: ["term", "weight", "token"], rows: terms.map(({ term, weight, token }) => [term, weight, token.text]) },
  };
}

const inWords = ({ term, weight }) => `${within(term)} ${number(weight)}`;

/**
 * The tokens that gave terms.
 * @returns {{position, text, start, end, terms, share}[]} `share`: the sum of their terms' weights
 */
function tokensOf(terms) {
  const tokens = new Map();
  for (const term of terms) {
    const { position } = term.token;
    if (!tokens.has(position)) tokens.set(position, { ...term.token, terms: [], share: 0 });
    const token = tokens.get(position);
    token.terms.push(term);
    token.share += term.weight;
  }
  return [...tokens.values()];
}

/** The text, with the tokens that gave terms. */
function painted(text, tokens, unknown) {
  const termsOf = (covering) => covering.flatMap((index) => tokens[index].terms.map(inWords));
  return [
    make("h3", {}, "Which tokens gave the terms"),
    paint(text, tokens, unknown, termsOf),
    make(
      "p",
      { class: "legend" },
      make("mark", { class: "for", "--share": 0.6 }, "Underlined"), " tokens gave terms: the stronger the tint, the larger the sum of their weights.",
      unknown.length > 0 ? [" ", make("span", { class: "unknown" }, "Dotted"), ": unknown."] : null,
      " Point at a term to see its token, or at a token to see its terms.",
    ),
  ];
}

/** The terms, the largest weight first. Each is a link to its neighbours. */
function list(terms, tokens, question) {
  const largest = terms[0]?.weight;
  const line = ({ term, weight, token }) =>
    make(
      "li",
      { title: `weight ${weight}`, "data-ranges": tokens.findIndex(({ position }) => position === token.position) },
      make("a", { href: ofWord(term, question) }, term),
      make("span", { class: "bar", "aria-hidden": "true" }, make("i", { "--share": weight / largest })),
      make("span", { class: "score" }, number(weight)),
      make("span", { class: "token" }, make("span", { class: "hidden" }, "from the token "), token.text),
    );
  return make("ol", { class: "hits" }, terms.map(line));
}

function notes({ head: name, terms }, head, k) {
  const of = head ? `, which knows ${count(head.terms)} terms` : "";
  return [
    terms.length === 0 ? make("p", {}, "No term of this head has a weight above 0 for this text.") : null,
    terms.length === k ? note(`Only the first ${count(k)} terms are shown.`) : null,
    note(`By the head ${name}${of}. A term's weight is the largest that any token gives it, ${head?.log1p === false ? "as a plain value" : "as the logarithm of 1 + value"}.`),
  ];
}
