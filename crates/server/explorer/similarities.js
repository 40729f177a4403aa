/** How alike all words on the screen are: the exact cosine similarity of every pair. */

import { ask } from "./api.js";

/** Words in the pictures at most: more could not be told apart. */
export const MOST_WORDS = 31;

/**
 * A symmetric matrix with 1 on its diagonal, rows and columns in the order of the words.
 * @param {string[]} words at most 45: a request takes 1,024 pairs
 * @returns {Promise<number[][]>}
 */
export async function similarities(words, { model, signal }) {
  const pairs = words.flatMap((one, place) => words.slice(place + 1).map((other) => [one, other]));
  const matrix = words.map((_, row) => words.map((_, column) => (row === column ? 1 : 0)));
  if (pairs.length === 0) return matrix;
  const { answer } = await ask("similarity", { body: { pairs }, model, signal });
  let next = 0;
  for (let row = 0; row < words.length; row += 1) {
    for (let column = row + 1; column < words.length; column += 1) {
      const { score, error } = answer.results[next];
      if (error?.code === "unknown_word") throw new Error(error.detail);
      // A row of norm zero is like nothing.
      matrix[row][column] = matrix[column][row] = score ?? 0;
      next += 1;
    }
  }
  return matrix;
}

/** The matrix with a point more in front, whose similarities to the others are the first ones of these. */
export function withCenter(matrix, scores) {
  return [[1, ...scores.slice(0, matrix.length)], ...matrix.map((row, place) => [scores[place], ...row])];
}
