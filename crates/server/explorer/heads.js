/** The heads of a model: the choice of one, texts to try, what to do if there is none, and what is left out of a text. */

import { ask } from "./api.js";
import { write } from "./address.js";
import { byId, count, make } from "./dom.js";
import { examplesOf } from "./examples.js";
import { isWord } from "./words.js";

/** The kind of head that answers a kind of query. */
export const KIND_OF_HEAD = { classify: "classifier", expand: "expander" };

/** Texts to try, for classifiers that have these labels. */
const EXAMPLES = ["a moving and funny film", "not bad at all, but far too long"];
const THEIR_LABELS = ["positive", "negative"];

/** Counts requests: an answer that comes after a later request's changes nothing. */
let last = 0;

/**
 * Requests the heads for this kind of query and shows them in the form.
 * @param {object} question its kind and model, and the options that examples keep
 * @param {?string} chosen the head to select, otherwise the first
 * @returns {Promise<object[]>} the heads, as the service describes them
 */
export async function loadHeads(question, chosen, signal) {
  const own = ++last;
  const { kind, model } = question;
  // Another kind has other heads.
  if (byId("head").dataset.kind !== kind) {
    show([], [], question, null);
    byId("no-head").hidden = true;
  }
  const all = (await ask("heads", { model, signal })).answer.heads;
  const heads = all.filter((head) => head.kind === KIND_OF_HEAD[kind]);
  const examples = heads.length > 0 ? await textsToTry(heads, question, signal) : [];
  if (own !== last) return heads;
  show(heads, examples, question, chosen);
  byId("no-head").hidden = heads.length > 0;
  return heads;
}

/** Questions that the heads are made for. */
async function textsToTry(heads, { kind, model }, signal) {
  if (kind === "expand") return (await examplesOf(model, signal)).filter((example) => example.kind === kind);
  const fitting = heads.find(({ labels }) => THEIR_LABELS.every((label) => labels.includes(label)));
  const head = heads.length > 1 ? fitting?.name : null;
  return fitting ? EXAMPLES.map((classify) => ({ classify, head, label: null })) : [];
}

function show(heads, examples, question, chosen) {
  const choice = byId("head");
  choice.dataset.kind = question.kind;
  choice.replaceChildren(...heads.map(({ name }) => make("option", {}, name)));
  if (heads.some(({ name }) => name === chosen)) choice.value = chosen;
  choice.closest("label").hidden = heads.length < 2;
  const chip = (example) => make("a", { class: "chip", href: write({ ...question, ...example }) }, example[question.kind]);
  byId("text-examples").replaceChildren(make("span", {}, "Try"), ...examples.map(chip));
  byId("text-examples").hidden = examples.length === 0;
}

/** The head that is chosen for this kind of query; null if there is only one, or none. */
export const chosenHead = (kind) => (byId("head").dataset.kind === kind && byId("head").options.length > 1 ? byId("head").value : null);

/** The head to name in a request: of several, the one that the form shows. */
export const headToAsk = (question, heads) => question.head ?? (heads.length > 1 ? heads[0].name : null);

/** A note below an answer. */
export const note = (...parts) => make("p", { class: "note" }, ...parts);

/** The words of a text that neither model nor head has; punctuation is none. */
export const unknownIn = ({ unknown = [] }) => unknown.filter(isWord);

/** Notes on the parts of a text that a head did not read. */
export function notesOnReading(answer, head) {
  const { cut } = answer;
  const unknown = unknownIn(answer);
  const { limit, cut: end } = head?.tokens ?? {};
  return [
    cut ? note(`The text is too long for this head. Only its ${end === "start" ? "last" : "first"} ${count(limit)} tokens (words and punctuation) were read.`) : null,
    unknown.length > 0 ? note(`Unknown words, dotted in the text: ${unknown.join(", ")}.`) : null,
  ];
}
