/** Words as people type them and as answers list them. */

const QUOTED = /"((?:[^"\\]|\\.)*)"/;
const BY_COMMAS = new RegExp(String.raw`\s*${QUOTED.source}\s*(?=,|$)|[^,]+`, "g");
const BY_SPACES = new RegExp(String.raw`${QUOTED.source}(?=\s|$)|\S+`, "g");

/** The words of a list: separated by commas, or by spaces if it has none. In quotes, a word may have both. */
export function wordsIn(text) {
  const hasCommas = text.replaceAll(new RegExp(QUOTED, "g"), "").includes(",");
  const words = [...text.matchAll(hasCommas ? BY_COMMAS : BY_SPACES)];
  return words.map(([piece, quoted]) => quoted?.replaceAll(/\\(.)/g, "$1") ?? piece.trim()).filter((word) => word !== "");
}

/** A word as part of a list: in quotes if it would be taken for several, or for quotes. */
export const inList = (word) => (/[\s,"]/.test(word) ? `"${word.replace(/["\\]/g, "\\$&")}"` : word);

/** Whether it is a word at all, and not a comma or a bracket. Pictures such as emoji are words. */
export const isWord = (word) => /[^\p{P}\p{S}\p{C}\s]|\p{Extended_Pictographic}/u.test(word);
