/**
 * The state of the page, as the part of the address after `#`. It can be shared and bookmarked, works with the browser's
 * back and forward buttons, and is never sent to a server.
 */

export const DEFAULT_K = 20;
/** The service's maximum k. */
const MOST_K = 1000;

/** The kinds of query, with their fields. */
export const KINDS = {
  word: ["word"], text: ["text"], analogy: ["analogy"], compare: ["compare", "with"], odd: ["odd"], documents: ["documents"], classify: ["classify"], expand: ["expand"], rows: ["rows"],
};

/** The kinds whose query is a text of several lines. */
export const TEXTS = ["documents", "classify", "expand"];

/** The tab of a kind of query: texts are typed where words are. */
export const tabOf = (kind) => (kind === "text" ? "word" : kind);

/**
 * Further fields of an address of this kind: the method; the head, and the label that is explained; the row that a page follows, and whether
 * a row is added.
 */
const ALSO = { analogy: ["method"], classify: ["head", "label"], expand: ["head"], rows: ["after", "add"] };

/** The methods that are not the default. */
const METHODS = ["3cosmul", "pairdirection"];

/** The tabs that an address names while they have no query. The first tab begins with an example. */
const EMPTY_TABS = Object.keys(KINDS).filter((kind) => !["word", "text", "rows"].includes(kind));

/**
 * Reads the query from an address.
 * @returns {object} `{kind, word | text | analogy and method | compare and with | odd | documents | classify, head and label | expand and head | rows, after and add, tab, k,
 *   limit, fold, exclude, filter, model}`; the kind is null if there is no query, or an incomplete one; then `tab` is the tab that is open, or
 *   null for the start page
 */
export function read(hash = location.hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const isWhole = (kind) => KINDS[kind].every((field) => parameters.get(field)?.trim());
  // Without a key, it is about all rows.
  const kind = Object.keys(KINDS).find(isWhole) ?? (parameters.has("rows") ? "rows" : undefined);
  const k = Math.min(Number(parameters.get("k")), MOST_K);
  const limit = Number(parameters.get("limit"));
  const question = {
    kind: kind ?? null,
    tab: kind === undefined && EMPTY_TABS.includes(parameters.get("tab")) ? parameters.get("tab") : null,
    k: Number.isInteger(k) && k >= 1 ? k : DEFAULT_K,
    limit: Number.isSafeInteger(limit) && limit >= 1 ? limit : null,
    fold: parameters.get("fold") === "1",
    exclude: parameters.get("exclude")?.trim() ? parameters.get("exclude") : null,
    filter: parameters.get("filter")?.trim() ? parameters.get("filter") : null,
    model: parameters.get("model"),
  };
  for (const field of KINDS[kind] ?? []) question[field] = parameters.get(field) ?? "";
  for (const field of ALSO[kind] ?? []) question[field] = parameters.get(field);
  if (kind === "analogy" && !METHODS.includes(question.method)) question.method = null;
  return question;
}

/** The address of a query, without defaults. */
export function write(question) {
  const parameters = new URLSearchParams();
  for (const field of KINDS[question.kind] ?? []) parameters.set(field, question[field]);
  for (const field of ALSO[question.kind] ?? []) if (question[field]) parameters.set(field, question[field]);
  if (question.kind === null && question.tab) parameters.set("tab", question.tab);
  if (question.k !== DEFAULT_K) parameters.set("k", question.k);
  if (question.limit) parameters.set("limit", question.limit);
  if (question.fold) parameters.set("fold", "1");
  if (question.exclude) parameters.set("exclude", question.exclude);
  if (question.filter) parameters.set("filter", question.filter);
  if (question.model) parameters.set("model", question.model);
  return `#${parameters}`;
}

/** The address of a word's neighbours, with the options of this query. */
export function ofWord(word, question) {
  return write({ ...question, kind: "word", word });
}

/** A word as part of an expression: in quotes if it would be read as something else. */
export function quoted(word) {
  const plain = !/[\s\u0085()"\\]|^[+-]|^[\d.]+(e[+-]?\d+)?\*/i.test(word) && word !== "";
  return plain ? word : inQuotes(word);
}

/** The word, always in quotes. */
export const inQuotes = (word) => `"${word.replace(/["\\]/g, "\\$&")}"`;
