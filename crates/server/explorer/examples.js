/** Example queries; only those whose words the model has are shown. */

import { ask } from "./api.js";
import { write } from "./address.js";
import { byId, make } from "./dom.js";
import { described, stampOf } from "./model.js";

const EXAMPLES = [
  { kind: "word", word: "ocean", needs: ["ocean"] },
  { kind: "word", word: "piano", needs: ["piano"] },
  { kind: "analogy", analogy: "king - man + woman", needs: ["king", "man", "woman"] },
  { kind: "analogy", analogy: "paris - france + japan", needs: ["paris", "france", "japan"] },
  { kind: "compare", compare: "coffee", with: "tea", needs: ["coffee", "tea"] },
  { kind: "odd", odd: "red green dog blue", needs: ["red", "green", "dog", "blue"] },
  { kind: "expand", expand: "cheap flights to the coast", needs: ["cheap", "flights", "to", "the", "coast"] },
  { kind: "expand", expand: "how do frogs breathe under water", needs: ["how", "do", "frogs", "breathe", "under", "water"] },
];

/** The examples of a model; requested once, until another model is selected or its rows change. */
let known = { of: undefined, examples: [] };

/** Shows those about words, with the options of a query; returns the first, or null if there is none. */
export async function showExamples(question, signal) {
  const examples = (await examplesOf(question.model, signal)).filter(({ kind }) => kind !== "expand");
  const chips = examples.map((example) => {
    const text = example.kind === "compare" ? `${example.compare} and ${example.with}` : example[example.kind];
    return make("a", { class: "chip", href: write({ ...question, ...example }) }, text);
  });
  byId("examples").replaceChildren(make("span", {}, "Try"), ...chips);
  byId("examples").hidden = chips.length === 0;
  return examples[0] ?? null;
}

/** The examples of a model. */
export async function examplesOf(model, signal) {
  const now = described(model);
  const of = now ? stampOf(now) : model;
  if (known.of !== of) known = { of, examples: await fitting(model, signal) };
  return known.examples;
}

/** The examples whose words a model has, and otherwise one of its frequent words, as a word and as a text. */
async function fitting(model, signal) {
  const words = [...new Set(EXAMPLES.flatMap((example) => example.needs))];
  const body = { pairs: words.map((word) => [word, word]) };
  const { answer } = await ask("similarity", { body, model, signal });
  const has = new Map(words.map((word, index) => [word, !answer.results[index].error]));
  const examples = EXAMPLES.filter((example) => example.needs.every((word) => has.get(word)));
  const isText = ({ kind }) => kind === "expand";
  if (examples.every(isText)) {
    const frequent = await ask("words", { parameters: { prefix: "", limit: 300 }, model, signal });
    examples.push(...frequent.answer.words.slice(-1).map(({ word }) => ({ kind: "word", word, needs: [word] })));
  }
  if (examples.some(isText)) return examples;
  return [...examples, ...examples.slice(0, 1).map(({ needs }) => ({ kind: "expand", expand: needs.join(" ") }))];
}
