/** A text painted with the shares of its parts, and the highlighting of parts beside their list. */

import { make } from "./dom.js";

/**
 * Places in a text.
 * @param {number[]} bytes places in its UTF-8 form
 * @returns {Map<number, number>} places in the string, in UTF-16 units, by those
 */
export function placesOfBytes(text, bytes) {
  const wanted = new Set(bytes);
  const places = new Map();
  let [byte, unit] = [0, 0];
  for (const letter of text) {
    if (wanted.has(byte)) places.set(byte, unit);
    const code = letter.codePointAt(0);
    byte += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    unit += letter.length;
  }
  return places.set(byte, unit);
}

/** A letter or digit of a longer word. Some scripts have no spaces between words; their letters stand alone. */
const PART = String.raw`(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}])[\p{L}\p{M}\p{N}]`;
const OPENS = new RegExp(`^${PART}`, "u");
const CLOSES = new RegExp(`${PART}$`, "u");

/** Where a word stands in a text, not as a part of a longer word: `[start, end]` in UTF-16 units. */
export function placesOf(text, word) {
  const found = [];
  for (let start = text.indexOf(word); word !== "" && start >= 0; start = text.indexOf(word, start + 1)) {
    const end = start + word.length;
    // Two units are the most that a character has.
    const before = CLOSES.test(text.slice(Math.max(start - 2, 0), start)) && OPENS.test(word);
    const after = CLOSES.test(word) && OPENS.test(text.slice(end, end + 2));
    if (!before && !after) found.push([start, end]);
  }
  return found;
}

/**
 * Divides a text where ranges (n-grams, tokens) or unknown words begin and end. N-grams overlap; what several cover has
 * the sum of their shares.
 * @param {{start, end, share}[]} parts the ranges in bytes of UTF-8, as the service gives them
 * @param {string[]} unknown
 * @returns {{text, covering, share, isUnknown}[]} the pieces in order; `covering`: the indices of ranges
 */
export function pieces(text, parts, unknown = []) {
  const places = placesOfBytes(text, parts.flatMap(({ start, end }) => [start, end]));
  const ranges = parts.map(({ start, end }) => [places.get(start), places.get(end)]);
  const left = unknown.flatMap((word) => placesOf(text, word));
  // Where spans begin and end, so that a long text takes one pass.
  const changes = new Map([[0, []], [text.length, []]]);
  [...ranges, ...left].forEach(([from, to], index) => {
    for (const place of [from, to]) if (!changes.has(place)) changes.set(place, []);
    if (from === to) return;
    changes.get(from).push([index, true]);
    changes.get(to).push([index, false]);
  });
  const cuts = [...changes.keys()].sort((a, b) => a - b);
  const open = new Set();
  return cuts.slice(1).map((end, place) => {
    const start = cuts[place];
    for (const [index, begins] of changes.get(start)) {
      if (begins) open.add(index);
      else open.delete(index);
    }
    const covering = [...open].filter((index) => index < ranges.length).sort((a, b) => a - b);
    const share = covering.reduce((sum, index) => sum + parts[index].share, 0);
    return { text: text.slice(start, end), covering, share, isUnknown: open.size > covering.length };
  });
}

/**
 * The text as an element. `data-ranges` of each tinted piece names the ranges that cover it.
 * @param {function} reasons `(covering, share)`: the lines that a piece shows when it is pointed at
 */
export function paint(text, ranges, unknown, reasons) {
  const parts = pieces(text, ranges, unknown);
  const most = Math.max(...parts.map(({ share }) => Math.abs(share)), Number.MIN_VALUE);
  const element = ({ text, covering, share, isUnknown }) => {
    if (covering.length === 0 && !isUnknown) return text;
    const side = share > 0 ? "for" : share < 0 ? "against" : "";
    const lines = [...reasons(covering, share), ...(isUnknown ? ["unknown word"] : [])];
    const attributes = {
      class: `${side}${isUnknown ? " unknown" : ""}`.trim(),
      title: lines.join("\n"),
      "--share": Math.abs(share) / most,
      "data-ranges": covering.join(" "),
    };
    return make(side === "" ? "span" : "mark", attributes, text);
  };
  return make("p", { class: "painted", dir: "auto" }, parts.map(element));
}

/**
 * Highlights what is pointed at or focused: with a line of the list its ranges in the text, and with a piece of the text
 * the lines of all ranges that cover it.
 */
export function watch(part) {
  const ranges = (element) => element.dataset.ranges.split(" ").filter((index) => index !== "");
  const mark = (event) => {
    const at = event.target.closest("[data-ranges]");
    const pointed = new Set(at ? ranges(at) : []);
    const isPiece = (element) => element.closest(".painted") !== null;
    for (const element of part.querySelectorAll("[data-ranges]")) {
      const isSameSide = at && isPiece(at) === isPiece(element);
      const isMarked = isSameSide ? element === at : ranges(element).some((index) => pointed.has(index));
      element.classList.toggle("pointed-at", isMarked);
    }
  };
  const clear = () => {
    for (const element of part.querySelectorAll(".pointed-at")) element.classList.remove("pointed-at");
  };
  for (const name of ["pointerover", "focusin"]) part.addEventListener(name, mark);
  for (const name of ["pointerleave", "focusout"]) part.addEventListener(name, clear);
}
