/** The odd one out: words ranked by their similarity to the mean of them all; the last does not belong. */

import { ask } from "./api.js";
import { ofWord } from "./address.js";
import { make, number, within } from "./dom.js";
import { bar, ranked, row } from "./neighbours.js";
import { wordsIn } from "./words.js";

/** The service's minimum. */
export const FEWEST_WORDS = 3;

/** Ranks the words; returns what every view returns (see neighbours.js). */
export async function find(question, signal) {
  const { odd, model } = question;
  const found = await ask("odd-one-out", { body: { words: wordsIn(odd) }, model, signal });
  const { odd_one_out: word, ranked: hits } = found.answer;
  const { score } = hits.at(-1);
  const lines = hits.map((hit) => row(hit, question, bar(hit.score)));
  lines.at(-1).classList.add("odd");
  return {
    ...found,
    title: `Odd one out: ${word}`,
    content: [
      make("p", {}, make("a", { href: ofWord(word, question) }, word), ` is the least similar to the mean of all ${hits.length} words: ${number(score)}.`),
      ranked(lines),
    ],
    status: `The odd one out is ${within(word)}: ${number(score, 2)} to the mean of all`,
    table: { columns: ["word", "score", "row"], rows: hits.map(({ word, score, row }) => [word, score, row]) },
    center: { label: "the mean", scores: hits.map((hit) => hit.score) },
    asked: [],
    hits: hits.map((hit) => hit.word),
  };
}
