/** Documents found by a text: of each the piece that has the text's words, and its attributes. */

import { write } from "./address.js";
import { ask } from "./api.js";
import { make, number, within } from "./dom.js";
import { MOST_ATTRIBUTES, attributesTable } from "./filter.js";
import { asValue, testsOf, withTest } from "./filter_text.js";
import { note } from "./heads.js";
import { attributesOf, described } from "./model.js";
import { bar, notesOnReading, ranked, row } from "./neighbours.js";
import { snippet, wordsOf } from "./snippet.js";

/** A longer value is no link that filters. */
const LONGEST_VALUE = 40;

/** Requests the documents nearest to a text; returns what every view returns (see neighbours.js), without map and matrix. */
export async function find(question, signal) {
  const { documents: text, k, filter, model } = question;
  const about = described(model);
  // The service would search among words.
  if (about && !about.documents) throw Object.assign(new Error("this model has no documents"), { document: { code: "no_documents" } });
  const attributes = attributesOf(model);
  const body = { text, k, ...(filter && { filter }), ...(attributes.length > 0 && { with_attributes: true }) };
  const found = await ask("nearest", { body, model, signal });
  const hits = found.answer.neighbors;
  const kept = keptText(hits, attributes, about);
  const words = wordsOf(text);
  const first = hits.slice(0, 3).map((hit) => `${within(hit.word)} ${number(hit.score, 2)}`);
  const { columns, cells } = attributesTable(hits);
  const none = note(filter ? "No document passes this filter." : "There are no documents.");
  return {
    ...found,
    title: `Documents near “${within(text)}”`,
    content: [
      notesOnReading(found.answer),
      hits.length > 0 ? ranked(hits.map((hit) => line(hit, kept, words, question)), "hits documents") : none,
      hits.length > 0 ? note("A key leads to the neighbours of its document, and an attribute to those that have it, too.") : null,
    ],
    status: hits.length > 0 ? `${hits.length} documents near ${within(text)}: ${first.join(", ")} …` : `No documents near ${within(text)}`,
    table: { columns: ["key", "score", "row", ...columns], rows: hits.map((hit) => [hit.word, hit.score, hit.row, ...cells(hit)]) },
  };
}

/**
 * The attribute with the documents' own texts: one that is stored, or else, of those that hardly repeat, the one with the
 * longest texts here. If the texts are not kept, a title does well in their place.
 */
function keptText(hits, attributes, about) {
  const stored = attributes.find(({ type }) => type === "stored");
  if (stored) return stored.name;
  const isOwn = ({ type, distinct, missing = 0 }) => type === "text" && (distinct === undefined || 2 * distinct > about.rows - missing);
  const length = (name) => hits.reduce((sum, { attributes }) => sum + (attributes[name]?.length ?? 0), 0);
  const names = attributes.filter(isOwn).map(({ name }) => name);
  return names.sort((a, b) => length(b) - length(a))[0];
}

/** A document: its key with a bar, a snippet of its text if that is kept, and its other attributes. */
function line(hit, kept, words, question) {
  const { attributes = {} } = hit;
  const text = attributes[kept];
  const piece = ({ text, isWord }) => (isWord ? make("mark", {}, text) : text);
  const rest = Object.entries(attributes).filter(([name, value]) => name !== kept && value !== null);
  const values = rest.flatMap(([name, value]) => [value].flat().map((one) => [name, one])).slice(0, MOST_ATTRIBUTES);
  const details = make(
    "div",
    { class: "details" },
    text ? make("p", { class: "snippet", dir: "auto" }, snippet(text, words).map(piece)) : null,
    values.length > 0 ? make("p", { class: "chips" }, values.map(([name, value]) => chip(name, value, question))) : null,
  );
  const element = row({ ...hit, attributes: null }, question, bar(hit.score), details);
  element.title = `score ${hit.score}; row ${hit.row}`;
  return element;
}

/** A value of an attribute: a link to the documents that have it, unless it is long, or the filter asks for it already. */
function chip(name, value, question) {
  const { filter } = question;
  const test = `${name} = ${typeof value === "string" ? asValue(value) : value}`;
  const isLink = String(value).length <= LONGEST_VALUE && !testsOf(filter ?? "").includes(test);
  const href = isLink ? write({ ...question, filter: withTest(filter, test) }) : null;
  return make(isLink ? "a" : "span", { class: "chip", href }, make("span", { class: "name" }, name), " ", within(String(value)));
}
