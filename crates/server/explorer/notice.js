/** Error messages, and what to do about them. */

import { Problem, Unreachable, address, apiKey } from "./api.js";
import { TEXTS, inQuotes, quoted, write } from "./address.js";
import { byId, make } from "./dom.js";
import { placesOf } from "./paint.js";
import { inList, isWord, wordsIn } from "./words.js";

/** The interval between checks whether the service is back. */
const LOOK_AGAIN_MS = 1500;

/** Where the form says how to make what a model lacks, by the code of the error. */
const WAYS = { no_such_head: "no-head", no_documents: "no-documents" };

let timer = null;

/** The number of consecutive failures to reach the service. */
let timesAway = 0;

/** Removes the message. */
export function clearNotice() {
  timesAway = 0;
  byId("filter").removeAttribute("aria-invalid");
  byId("notice").replaceChildren();
}

/** Stops retries, because another query starts. */
export function stopRetrying() {
  clearTimeout(timer);
}

/**
 * Shows what is wrong with a query.
 * @param {function} again runs it again
 */
export function showNotice(error, question, again) {
  stopRetrying();
  const way = byId(WAYS[error.document?.code]);
  if (way?.hidden === false) return showWay(way);
  const isAway = error instanceof Unreachable;
  timesAway = isAway ? timesAway + 1 : 0;
  // Screen readers should announce it only once.
  if (timesAway > 1 && byId("notice").children.length > 0) return lookAgain(again);
  byId("notice").replaceChildren(make("div", { class: "card notice" }, content(error, question, again)));
}

/** What a model lacks: the form says already what to do, in more words than the service. */
function showWay(way) {
  clearNotice();
  const heading = [...way.querySelectorAll("h2")].find((heading) => heading.checkVisibility());
  heading.scrollIntoView({ block: "nearest" });
  if (byId("search").contains(document.activeElement)) heading.focus();
}

function content(error, question, again) {
  const { document } = error;
  if (error instanceof Unreachable) {
    lookAgain(again);
    return [
      make("h2", {}, "The service is not responding"),
      make("p", {}, "It may be restarting, or the network may be down. This page continues as soon as the service is back."),
      make("button", { type: "button", onclick: again }, "Try now"),
    ];
  }
  if (document?.unknown) return unknown(document.unknown, question);
  if (document?.code === "bad_expression") return pointed("The expression can't be read", question.analogy, document, EXPRESSIONS);
  if (document?.code === "invalid_filter") return badFilter(document, question);
  if (error instanceof Problem && error.status === 401) return keyWanted(again);
  if (error instanceof Problem && [429, 503].includes(error.status)) {
    timer = setTimeout(again, error.retryAfterSeconds * 1000);
    return [make("h2", {}, document.title), make("p", {}, `${document.detail}. Retrying in ${error.retryAfterSeconds} s.`), make("button", { type: "button", onclick: again }, "Try now")];
  }
  const retry = make("button", { type: "button", onclick: again }, "Try again");
  if (!document) console.error(error);
  return [make("h2", {}, document?.title ?? "The request failed"), make("p", {}, error.message), retry];
}

function lookAgain(again) {
  timer = setTimeout(async () => {
    try {
      const live = await fetch(address("health/live"), { cache: "no-store" });
      if (!live.ok) throw new Unreachable(`status ${live.status}`);
      again();
    } catch {
      timesAway += 1;
      lookAgain(again);
    }
  }, LOOK_AGAIN_MS * Math.min(timesAway, 8));
}

function unknown(all, question) {
  const isText = question.kind === "text" || TEXTS.includes(question.kind);
  const words = isText && all.some(({ word }) => isWord(word)) ? all.filter(({ word }) => isWord(word)) : all;
  const lines = words.flatMap(({ word, suggestions = [], expression }) => {
    const links = suggestions.map((other) => make("a", { class: "chip", href: instead(question, word, other) }, other));
    return [
      make("p", {}, "The model does not have ", make("b", {}, word), suggestions.length ? ". Did you mean one of these?" : "."),
      links.length ? make("p", { class: "chips" }, links) : null,
      expression ? asExpression(question, word, expression) : null,
    ];
  });
  if (question.kind === "word" && /\s/.test(question.word.trim())) {
    const href = write({ ...question, kind: "text", text: question.word });
    lines.push(make("p", {}, make("a", { href }, "Search for it as a text: the sum of its words")));
  }
  return [make("h2", {}, words.length === 1 ? "Unknown word" : "Unknown words"), lines];
}

/** The expression that a word without spaces may stand for: a link if the word is the whole query. */
function asExpression(question, word, expression) {
  const isWhole = (question[question.kind] ?? "").trim() === word && ["word", "analogy"].includes(question.kind);
  const href = isWhole && write({ ...question, kind: "analogy", analogy: expression });
  const shown = isWhole ? make("a", { class: "chip", href }, expression) : make("b", {}, expression);
  return make("p", {}, "Signs inside a word belong to it. Did you mean the expression ", shown, "?");
}

/** The same query with one word replaced. */
function instead(question, word, other) {
  const changed = { ...question };
  for (const field of ["word", "compare", "with"]) if (changed[field] === word) changed[field] = other;
  if (TEXTS.includes(question.kind)) {
    const text = question[question.kind];
    // From the end, so that the places before it stay what they are.
    const replace = (text, [start, end]) => text.slice(0, start) + other + text.slice(end);
    changed[question.kind] = placesOf(text, word).reverse().reduce(replace, text);
  }
  if (question.kind === "odd") changed.odd = wordsIn(question.odd).map((own) => inList(own === word ? other : own)).join(", ");
  if (question.kind === "analogy") {
    // Only whole words, with or without sign, weight and quotes.
    const literal = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    const written = [word, inQuotes(word)].map(literal).join("|");
    const before = String.raw`(^|[\s()])([+-]?(?:[\d.]+(?:[eE][+-]?\d+)?\*)?)`;
    const occurrences = new RegExp(String.raw`${before}(?:${written})(?=$|[\s()])`, "g");
    changed.analogy = question.analogy.replace(occurrences, (_, edge, sign) => edge + sign + quoted(other));
  }
  return write(changed);
}

const EXPRESSIONS = "Examples: king - man + woman, or with weights and parentheses: 0.5*(king + queen) - man.";
const FILTERS = "Examples: price < 80 AND category = shoes, or NOT tags IN [red, \"dark red\"], or stock EXISTS.";

/** A text with a fault at a place. */
function pointed(heading, text, { detail, column }, examples) {
  return [
    make("h2", {}, heading),
    make("pre", { class: "pointed" }, `${text}\n${" ".repeat(column - 1)}^`),
    make("p", {}, `${detail}.`),
    make("p", {}, examples),
  ];
}

function badFilter(document, { filter }) {
  byId("filter").setAttribute("aria-invalid", "true");
  return pointed("The filter can't be used", filter, document, FILTERS);
}

const keyWanted = (again) => [make("h2", {}, "This service requires an API key"), keyForm(again)];

/** A form for the API key; `again` runs with it. */
export function keyForm(again) {
  const input = make("input", {
    type: "password",
    id: "api-key",
    autocomplete: "off",
    required: true,
    // The characters that a header allows.
    pattern: "\\s*[!-~]+\\s*",
    title: "The API key that you were given: letters and digits without spaces",
  });
  const submit = (event) => {
    event.preventDefault();
    apiKey.set(input.value.trim());
    again();
  };
  return make(
    "form",
    { onsubmit: submit, class: "key" },
    make("label", { for: "api-key" }, apiKey.get() ? "This key was refused. API key" : "API key (kept until you close this tab)"),
    input,
    make("button", { type: "submit" }, "Continue"),
  );
}
