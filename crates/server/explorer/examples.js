/** Questions to begin with, of which only those are shown whose words the model has. */

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

/** Shows them; returns the first, or a frequent word's neighbours where the model has none of theirs. */
export async function showExamples(question) {
  const { model, k } = question;
  const words = [...new Set(EXAMPLES.flatMap((example) => example.needs))];
  const { answer } = await ask("similarity", { body: { pairs: words.map((word) => [word, word]) }, model });
  const has = new Map(words.map((word, place) => [word, !answer.results[place].error]));
  const known = EXAMPLES.filter((example) => example.needs.every((word) => has.get(word)));
  const chips = known.map((example) => {
    const text = example.kind === "compare" ? `${example.compare} and ${example.with}` : example[example.kind];
    return make("a", { class: "chip", href: write({ ...example, k, model }) }, text);
  });
  byId("examples").replaceChildren(make("span", {}, "Try"), ...chips);
  byId("examples").hidden = chips.length === 0;
  if (known.length > 0) return { ...question, ...known[0] };
  const frequent = await ask("words", { parameters: { prefix: "", limit: 300 }, model });
  const word = frequent.answer.words.at(-1)?.word;
  return word === undefined ? null : { ...question, kind: "word", word };
}
