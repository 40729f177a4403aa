/** Filters as texts: their pieces, what may follow in them, and the tests that all rows have to meet. */

const KEYWORDS = ["AND", "OR", "NOT", "IN", "TO", "EXISTS", "IS", "NULL", "STARTS", "WITH", "TRUE", "FALSE"];
const PIECES = /"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[()[\],]|[=<>!]+|[^\s()[\],=<>!"']+/g;

/** The operators of a type of attribute, and of the word of a row. */
const ORDERED = ["<", "<=", ">", ">=", "=", "!=", "EXISTS", "IS NULL"];
const OF_TEXTS = ["=", "!=", "IN [", "NOT IN [", "STARTS WITH", "EXISTS", "IS NULL"];
const OPERATORS = {
  text: OF_TEXTS, list: OF_TEXTS, integer: ORDERED, number: ORDERED, "date-time": ORDERED, boolean: ["=", "!=", "EXISTS", "IS NULL"],
  stored: ["EXISTS", "IS NULL"],
  key: ["=", "!=", "IN [", "NOT IN ["],
};

/** A text as a value of a filter: in quotes if it would be read as something else. */
export function asValue(text) {
  const isPlain = /^[^\s()[\],=<>!"'\p{Cc}]+$/u.test(text) && !KEYWORDS.includes(text.toUpperCase());
  return isPlain ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** The pieces of a filter, with their places; keywords in capitals. */
function pieces(filter) {
  return [...filter.matchAll(PIECES)].map(({ 0: text, index }) => {
    const name = text.toUpperCase();
    return { text, name: KEYWORDS.includes(name) ? name : null, from: index, to: index + text.length };
  });
}

/** The tests of a filter that a row has to meet, all of them; the whole filter if it has no `AND` outside of parentheses, or an `OR`. */
export function testsOf(filter) {
  const tests = [];
  let [depth, from] = [0, 0];
  for (const piece of pieces(filter)) {
    if ("([".includes(piece.text)) depth += 1;
    if (")]".includes(piece.text)) depth -= 1;
    if (depth !== 0) continue;
    if (piece.name === "OR") return [filter.trim()];
    if (piece.name !== "AND") continue;
    tests.push(filter.slice(from, piece.from).trim());
    from = piece.to;
  }
  return [...tests, filter.slice(from).trim()].filter((test) => test !== "");
}

/** A filter with one more test that rows have to meet. */
export function withTest(filter, test) {
  if (!filter) return test;
  return `${pieces(filter).some(({ name }) => name === "OR") ? `(${filter})` : filter} AND ${test}`;
}

/** What a filter needs after some pieces: the `attribute` that is tested, and the kind of piece that is `next`. */
function after(all, typeOf) {
  let [attribute, next, inList] = [null, "test", false];
  for (const { text, name } of all) {
    if (next === "test") {
      if (text === "(" || name === "NOT") continue;
      [attribute, next] = [text, "operator"];
    } else if (next === "operator") {
      if (/^[=<>!]/.test(text) || name === "WITH" || name === "TO") next = "value";
      else if (text === "[") [next, inList] = ["value", true];
      else if (name === "EXISTS" || name === "NULL") next = "joint";
      // A number before TO.
      else if (name === null) next = "to";
    } else if (next === "to") next = "value";
    else if (next === "value") next = inList ? "comma" : "joint";
    else if (next === "comma") [next, inList] = text === "," ? ["value", true] : ["joint", false];
    else if (name === "AND" || name === "OR") next = "test";
  }
  return { attribute, type: attribute === "key" ? "key" : typeOf(attribute), next };
}

/**
 * What may stand at the caret of a filter.
 * @param {object[]} attributes those of the model, as `/model` describes them
 * @returns `{typed, from, to, items}`: the place of the piece at the caret and what is typed of it; each item has the `text` that
 *   goes there, and a `note`
 */
export function completions(filter, caret, attributes) {
  const all = pieces(filter).filter(({ from }) => from < caret);
  const last = all.at(-1);
  // A sign ends where it ends; a word may go on.
  const isOpen = last !== undefined && last.to >= caret && !/^[()[\],]$/.test(last.text);
  const place = isOpen ? { from: last.from, to: last.to } : { from: caret, to: caret };
  const typed = isOpen ? filter.slice(last.from, caret) : "";
  const typeOf = (name) => attributes.find((one) => one.name === name)?.type;
  const { attribute, type, next } = after(isOpen ? all.slice(0, -1) : all, typeOf);
  const plain = (texts, note) => texts.map((text) => ({ text, note }));
  const items = {
    test: () => [...attributes.map(({ name, type }) => ({ text: name, note: type })), { text: "key", note: "word of a row" }, { text: "NOT", note: "all others" }],
    operator: () => plain(OPERATORS[type] ?? [], "operator"),
    value: () => values(attributes.find(({ name }) => name === attribute)),
    to: () => plain(["TO"], "up to"),
    comma: () => plain([",", "]"], "list"),
    joint: () => [{ text: "AND", note: "both" }, { text: "OR", note: "one of them" }],
  }[next]();
  // Someone may have begun with a quote that is not needed.
  const bare = (text) => text.replace(/^["']/, "").toLowerCase();
  return { ...place, typed, items: items.filter(({ text }) => bare(text).startsWith(bare(typed))) };
}

/** The values that an attribute frequently has. */
function values(attribute) {
  if (attribute?.type === "boolean") return ["true", "false"].map((text) => ({ text, note: "boolean" }));
  return (attribute?.frequent ?? []).map(({ value, rows }) => ({ text: asValue(value), note: rows?.toLocaleString("en") ?? "" }));
}
