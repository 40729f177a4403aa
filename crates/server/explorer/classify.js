/** Texts classified: the labels with their probabilities, and the text painted with what speaks for and against one. */

import { ask } from "./api.js";
import { write } from "./address.js";
import { count, make, number, within } from "./dom.js";
import { headToAsk, loadHeads, note, notesOnReading, unknownIn } from "./heads.js";
import { paint, watch } from "./paint.js";

/** The most labels that are listed. */
const MOST_LABELS = 20;

/** Requests the labels of a text; returns what every view returns (see neighbours.js), without map and matrix. */
export async function find(question, signal) {
  const { classify: text, label, model } = question;
  const heads = await loadHeads(question, question.head, signal);
  const name = headToAsk(question, heads);
  const body = { text, ...(name && { head: name }), explain: true, ...(label && { explain_label: label }), top: MOST_LABELS };
  const found = await ask("classify", { body, model, signal });
  const head = heads.find((head) => head.name === found.answer.head);
  const { labels, explanation } = found.answer;
  const percent = ({ label, probability }) => `${within(label)} ${percentage(probability)}`;
  return {
    ...found,
    title: `Labels of “${within(text)}”`,
    content: [
      make(
        "div",
        { class: "classified" },
        make("div", {}, list(labels, explanation, question), notes(found.answer, head)),
        reasons(text, unknownIn(found.answer), explanation),
      ),
    ],
    status: `${within(text)}: ${labels.slice(0, 3).map(percent).join(", ")}`,
    table: { columns: ["label", "probability"], rows: labels.map(({ label, probability }) => [label, probability]) },
  };
}

const percentage = (probability) => `${(100 * probability).toFixed(1)} %`;

/** The labels, the most probable first. Each is a link that explains it. */
function list(labels, explanation, question) {
  const rows = labels.map(({ label, probability }) => {
    const isExplained = label === explanation.label;
    const href = write({ ...question, label });
    return make(
      "li",
      { title: `probability ${probability}` },
      make("a", { href, "aria-current": isExplained ? "true" : null }, label),
      make("span", { class: "bar", "aria-hidden": "true" }, make("i", { "--share": probability })),
      make("span", { class: "score" }, percentage(probability)),
    );
  });
  return make("ol", { class: "hits" }, rows);
}

function notes(answer, head) {
  const { head: name, labels } = answer;
  const more = (head?.labels.length ?? 0) - labels.length;
  return [
    ...notesOnReading(answer, head),
    more > 0 ? note(`${count(more)} less probable ${more === 1 ? "label is" : "labels are"} not shown.`) : null,
    head?.probabilities === "sigmoid" ? note("Any number of these labels may be right, so the probabilities need not add up to 1.") : null,
    note(`By the head ${name}. Choose a label to see what speaks for it.`),
  ];
}

/** The painted text, and the shares in numbers. */
function reasons(text, unknown, { label, score, base, ngrams, others, exact }) {
  const name = within(label);
  const painted = paint(text, ngrams, unknown, reasonsOf(ngrams));
  const shares = table(label, ngrams, [["other n-grams", others], ["without the text", base]], score);
  const part = make(
    "section",
    { class: "reasons" },
    make("h3", {}, `What speaks for and against ${name}`),
    painted,
    make(
      "p",
      { class: "legend" },
      make("mark", { class: "for", "--share": 0.6 }, "Solid line"), ` speaks for ${name}, `,
      make("mark", { class: "against", "--share": 0.6 }, "dashed line"), " against it. The stronger the tint, the larger the share; where n-grams overlap, their shares are added.",
      unknown.length > 0 ? [" ", make("span", { class: "unknown" }, "Dotted"), ": unknown."] : null,
    ),
    shares,
    note(exact
      ? `Each channel of the head takes its maximum from one n-gram, so these shares add up to the class score of ${name}.`
      : "This head has several dense layers. So a share is the gradient of the class score times the n-gram's value: an approximation."),
  );
  watch(part);
  return part;
}

/** A share with its sign. */
const signed = (share) => (share < 0 ? number(share) : `+${number(share)}`);

/** Says which n-grams cover a piece of the text. */
const reasonsOf = (ngrams) => (covering, share) => {
  const lines = covering.map((index) => `${ngrams[index].text}: ${signed(ngrams[index].share)}`);
  return covering.length > 1 ? [...lines, `together: ${signed(share)}`] : lines;
};

function table(label, ngrams, rest, score) {
  const sizes = ngrams.map(({ share }) => share);
  const [most, least] = [Math.max(0, ...sizes), Math.max(0, ...sizes.map((share) => -share))];
  const whole = most + least || 1;
  const side = (share, sign) => (share * sign > 0 ? make("i", { "--share": Math.abs(share) / whole }) : null);
  const bars = (share) => make(
    "span",
    { class: "shares", "aria-hidden": "true", "--zero": least / whole },
    make("span", { class: "take" }, side(share, -1)),
    make("span", { class: "give" }, side(share, 1)),
  );
  const row = (name, share, more = {}) =>
    make("tr", more, make("th", { scope: "row" }, name), make("td", {}, more["data-ranges"] ? bars(share) : null), make("td", {}, signed(share)));
  return make(
    "table",
    { class: "ngrams" },
    make("caption", { class: "hidden" }, `N-grams with their shares of the class score of ${label}`),
    make("thead", { class: "hidden" }, make("tr", {}, ["n-gram", "as a bar", "share"].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ngrams.map(({ text, share }, index) => row(text, share, { "data-ranges": String(index) })), rest.map(([name, share]) => row(name, share, { class: "rest" }))),
    make("tfoot", {}, make("tr", { class: "sum" }, make("th", { scope: "row" }, "class score"), make("td", {}), make("td", {}, number(score)))),
  );
}
