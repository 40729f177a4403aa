/** Compares two words: neighbours of only the first, of both, and of only the second. */

import { ask } from "./api.js";
import { ofWord } from "./address.js";
import { make, number, within } from "./dom.js";
import { options } from "./neighbours.js";
import { ofPairs } from "./similarities.js";

/** Requests both and compares them; returns what every view returns (see neighbours.js). */
export async function find(question, signal) {
  const { compare: one, with: other, model } = question;
  const body = { ...options(question), queries: [{ word: one }, { word: other }] };
  const found = await ask("nearest", { body, model, signal });
  const failed = found.answer.results.map((result) => result.error).filter(Boolean);
  if (failed.length > 0) throw together(failed);

  const [ofOne, ofOther] = found.answer.results.map((result) => result.neighbors.map((hit) => hit.word));
  const union = [...new Set([...ofOne, ...ofOther])].filter((word) => word !== one && word !== other);
  const scores = await scoresOf([one, other], union, { model, signal });
  const parts = [
    [`Only near “${one}”`, union.filter((word) => !ofOther.includes(word))],
    ["Near both", union.filter((word) => ofOne.includes(word) && ofOther.includes(word))],
    [`Only near “${other}”`, union.filter((word) => !ofOne.includes(word))],
  ];
  const between = scores.get(other)[0];
  return {
    ...found,
    title: `“${one}” and “${other}”`,
    content: [
      make("p", {}, "Their similarity is ", make("strong", { title: between }, number(between)), "."),
      make("div", { class: "parts" }, parts.map((part) => column(part, scores, question))),
    ],
    status: `${within(one)} and ${within(other)}: similarity ${number(between, 2)}, ${parts[1][1].length} shared neighbours`,
    table: {
      columns: ["word", "near", `score with ${one}`, `score with ${other}`],
      rows: [one, "both", other].flatMap((near, place) => parts[place][1].map((word) => [word, near, ...scores.get(word)])),
    },
    center: null,
    asked: [one, other],
    hits: [...parts[1][1], ...alternating(parts[0][1], parts[2][1])],
  };
}

/** The scores of these words with both, by word, including those of the two words themselves. */
async function scoresOf([one, other], words, service) {
  const all = [other, ...words];
  const scores = await ofPairs(all.flatMap((word) => [[one, word], [other, word]]), service);
  return new Map(all.map((word, index) => [word, [scores[2 * index], scores[2 * index + 1]]]));
}

function column([heading, words], scores, question) {
  const better = (word) => Math.max(...scores.get(word));
  const rows = [...words].sort((a, b) => better(b) - better(a)).map((word) => {
    const [one, other] = scores.get(word);
    const title = `${question.compare}: ${one}; ${question.with}: ${other}`;
    return make(
      "li",
      { "data-word": word, title },
      make("span", { class: "score one" }, number(one, 2)),
      half(one, "one"),
      make("a", { href: ofWord(word, question) }, word),
      half(other, "other"),
      make("span", { class: "score other" }, number(other, 2)),
    );
  });
  const none = make("p", { class: "note" }, "None.");
  return make("section", {}, make("h3", {}, heading), rows.length ? make("ul", { class: "both" }, rows) : none);
}

function half(score, side) {
  return make("span", { class: `half ${side}`, "aria-hidden": "true" }, make("i", { "--share": Math.max(score, 0) }));
}

function* zip(one, other) {
  for (let index = 0; index < Math.max(one.length, other.length); index += 1) yield [one[index], other[index]];
}

const alternating = (one, other) => [...zip(one, other)].flat().filter((word) => word !== undefined);

/** The problems of several queries as one error. */
function together(problems) {
  const error = new Error([...new Set(problems.map((problem) => problem.detail))].join("; "));
  const unknown = problems.flatMap((problem) => problem.unknown ?? []);
  error.document = { ...problems[0], ...(unknown.length > 0 && { unknown }) };
  return error;
}
