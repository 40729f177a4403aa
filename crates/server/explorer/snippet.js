/** Snippets: the piece of a text that has most of a query's words. */

import { placesOf } from "./paint.js";

/** The length of a snippet in UTF-16 units. */
export const LENGTH = 200;
/** Of these, what stands before the first word. */
const BEFORE = 30;

/** The words of a query, each once, in small letters. */
export function wordsOf(query) {
  const pieces = [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(query.toLowerCase())];
  return [...new Set(pieces.filter(({ isWordLike }) => isWordLike).map(({ segment }) => segment))];
}

/**
 * The piece of a text with the words that say most, or else its beginning.
 * @param {string[]} words in small letters
 * @returns {{text, isWord}[]} its pieces, with an ellipsis where the text goes on
 */
export function snippet(text, words) {
  const marks = marksOf(text, words);
  const [start, end] = text.length <= LENGTH ? [0, text.length] : partOf(text, marks);
  const pieces = [{ text: start > 0 ? "…" : "", isWord: false }];
  let at = start;
  for (const mark of marks.filter((mark) => mark.start >= start && mark.end <= end)) {
    pieces.push({ text: text.slice(at, mark.start), isWord: false }, { text: text.slice(mark.start, mark.end), isWord: true });
    at = mark.end;
  }
  pieces.push({ text: text.slice(at, end), isWord: false }, { text: end < text.length ? "…" : "", isWord: false });
  return pieces.filter((piece) => piece.text !== "");
}

/** Where the words stand in a text, in order, none within another. */
function marksOf(text, words) {
  const small = text.toLowerCase();
  // A few letters have another length in small letters.
  const searched = small.length === text.length ? small : text;
  const all = words.flatMap((word) => placesOf(searched, word).map(([start, end]) => ({ word, start, end })));
  all.sort((a, b) => a.start - b.start || b.end - a.end);
  const marks = [];
  for (const mark of all) if (mark.start >= (marks.at(-1)?.end ?? 0)) marks.push(mark);
  return marks;
}

/** The start and the end of the part with the most letters of different words, so that a rare word counts more than "the". */
function partOf(text, marks) {
  let best = { letters: 0, start: 0 };
  marks.forEach(({ start }, first) => {
    const words = new Set();
    for (let index = first; index < marks.length && marks[index].end <= start + LENGTH - BEFORE; index += 1) words.add(marks[index].word);
    const letters = [...words].join("").length;
    if (letters > best.letters) best = { letters, start };
  });
  const from = Math.min(best.start - BEFORE, text.length - LENGTH);
  const start = from <= 0 ? 0 : nextWord(text, from, best.start);
  const end = Math.min(start + LENGTH, text.length);
  return [start, end === text.length ? end : lastWord(text, end)];
}

/** The first place behind white space and before `most`; without any, a place that divides no character. */
function nextWord(text, from, most) {
  const space = text.slice(from, most).search(/\s/);
  return space >= 0 ? from + space + 1 : whole(text, from);
}

/** The last white space within a word's length before a place; without any, a place that divides no character. */
function lastWord(text, end) {
  const space = text.slice(end - BEFORE, end + 1).search(/\s\S*$/);
  return space >= 0 ? end - BEFORE + space : whole(text, end);
}

/** A place, or the one before it if that is in the middle of a character of two units. */
const whole = (text, place) => (/[\udc00-\udfff]/.test(text[place] ?? "") ? place - 1 : place);
