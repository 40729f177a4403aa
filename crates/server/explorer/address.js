/**
 * The state of the page, as the part of the address after `#`. It can be shared and bookmarked, works with the browser's
 * back and forward buttons, and is never sent to a server.
 */

export const DEFAULT_K = 20;
/** The service's maximum k. */
const MOST_K = 1000;

/** The kinds of query, with their fields. */
export const KINDS = { word: ["word"], text: ["text"], analogy: ["analogy"], compare: ["compare", "with"], classify: ["classify"], expand: ["expand"] };

/** What an address of this kind may also have: the head, and the label that is explained. */
const ALSO = { classify: ["head", "label"], expand: ["head"] };

/**
 * Reads the query from an address.
 * @returns {object} `{kind, word | text | analogy | compare and with | classify, head and label | expand and head, k, limit, fold, model}`;
 *   the kind is null if there is no query, or an incomplete one
 */
export function read(hash = location.hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const isWhole = (kind) => KINDS[kind].every((field) => parameters.get(field)?.trim());
  const kind = Object.keys(KINDS).find(isWhole);
  const k = Math.min(Number(parameters.get("k")), MOST_K);
  const limit = Number(parameters.get("limit"));
  const question = {
    kind: kind ?? null,
    k: Number.isInteger(k) && k >= 1 ? k : DEFAULT_K,
    limit: Number.isSafeInteger(limit) && limit >= 1 ? limit : null,
    fold: parameters.get("fold") === "1",
    model: parameters.get("model"),
  };
  for (const field of KINDS[kind] ?? []) question[field] = parameters.get(field) ?? "";
  for (const field of ALSO[kind] ?? []) question[field] = parameters.get(field);
  return question;
}

/** The address of a query, without defaults. */
export function write(question) {
  const parameters = new URLSearchParams();
  for (const field of KINDS[question.kind] ?? []) parameters.set(field, question[field]);
  for (const field of ALSO[question.kind] ?? []) if (question[field]) parameters.set(field, question[field]);
  if (question.k !== DEFAULT_K) parameters.set("k", question.k);
  if (question.limit) parameters.set("limit", question.limit);
  if (question.fold) parameters.set("fold", "1");
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
