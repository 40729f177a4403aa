/** The heads of a model: the choice of one, texts to try, and what to do if there is none. */

import { ask } from "./api.js";
import { write } from "./address.js";
import { byId, make } from "./dom.js";

/** Texts to try, for heads that have these labels. */
const EXAMPLES = ["a moving and funny film", "not bad at all, but far too long"];
const THEIR_LABELS = ["positive", "negative"];

/** Counts requests: an answer that comes after a later request's changes nothing. */
let last = 0;

/**
 * Requests the heads and shows them in the form.
 * @param {object} question its model, and the options that examples keep
 * @param {?string} chosen the head to select, otherwise the first
 * @returns {Promise<object[]>} the heads, as the service describes them
 */
export async function loadHeads(question, chosen, signal) {
  const own = ++last;
  const all = (await ask("heads", { model: question.model, signal })).answer.heads;
  // This page shows labels; expanders give terms.
  const heads = all.filter(({ kind }) => kind === "classifier");
  if (own === last) show(heads, question, chosen);
  return heads;
}

function show(heads, question, chosen) {
  const choice = byId("head");
  choice.replaceChildren(...heads.map(({ name }) => make("option", {}, name)));
  if (heads.some(({ name }) => name === chosen)) choice.value = chosen;
  choice.closest("label").hidden = heads.length < 2;
  byId("no-head").hidden = heads.length > 0;
  const fitting = heads.find(({ labels }) => THEIR_LABELS.every((label) => labels.includes(label)));
  const example = { ...question, kind: "classify", head: heads.length > 1 ? fitting?.name : null, label: null };
  const chip = (text) => make("a", { class: "chip", href: write({ ...example, classify: text }) }, text);
  const chips = fitting ? EXAMPLES.map(chip) : [];
  byId("text-examples").replaceChildren(make("span", {}, "Try"), ...chips);
  byId("text-examples").hidden = chips.length === 0;
}

/** The head that is chosen; null if there is only one, or none. */
export const chosenHead = () => (byId("head").options.length > 1 ? byId("head").value : null);
