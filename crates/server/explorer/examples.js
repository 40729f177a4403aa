/** Example queries; only those whose words the model has are shown. */

import { ask } from "./api.js";
import { write } from "./address.js";
import { byId, make } from "./dom.js";

const EXAMPLES = [
  { kind: "word", word: "ocean", needs: ["ocean"] },
  { kind: "word", word: "piano", needs: ["piano"] },
  { kind: "analogy", analogy: "king - man + woman", needs: ["king", "man", "woman"] },
  { kind: "analogy", analogy: "paris - france + japan", needs: ["paris", "france", "japan"] },
  { kind: "compare", compare: "coffee", with: "tea", needs: ["coffee", "tea"] },
];

/** The examples of a model; requested once, until another model is selected. */
let known = { model: undefined, examples: [] };

/** Shows them with the options of a query; returns the first, or null if there is none. */
export async function showExamples(question, signal) {
  const { model } = question;
  if (known.model !== model) known = { model, examples: await examplesOf(model, signal) };
  const chips = known.examples.map((example) => {
    const text = example.kind === "compare" ? `${example.compare} and ${example.with}` : example[example.kind];
    return make("a", { class: "chip", href: write({ ...question, ...example }) }, text);
  });
  byId("examples").replaceChildren(make("span", {}, "Try"), ...chips);
  byId("examples").hidden = chips.length === 0;
  return known.examples[0] ?? null;
}

/** The examples whose words a model has, or otherwise one of its frequent words. */
async function examplesOf(model, signal) {
  const words = [...new Set(EXAMPLES.flatMap((example) => example.needs))];
  const body = { pairs: words.map((word) => [word, word]) };
  const { answer } = await ask("similarity", { body, model, signal });
  const has = new Map(words.map((word, index) => [word, !answer.results[index].error]));
  const examples = EXAMPLES.filter((example) => example.needs.every((word) => has.get(word)));
  if (examples.length > 0) return examples;
  const frequent = await ask("words", { parameters: { prefix: "", limit: 300 }, model, signal });
  return frequent.answer.words.slice(-1).map(({ word }) => ({ kind: "word", word }));
}
