/** The exact cosine similarity of every pair of words on the screen. */

import { ask } from "./api.js";

/** Maximum number of words on map and matrix; more would not be readable. */
export const MOST_WORDS = 31;

/** Maximum number of pairs per request. */
const MOST_PAIRS = 1024;

/**
 * The similarity of each pair of words, in order; 0 if a word's row is zero and has no direction.
 * @param {string[][]} pairs any number
 * @returns {Promise<number[]>}
 */
export async function ofPairs(pairs, { model, signal }) {
  const parts = [];
  for (let from = 0; from < pairs.length; from += MOST_PAIRS) parts.push(pairs.slice(from, from + MOST_PAIRS));
  const asked = parts.map((part) => ask("similarity", { body: { pairs: part }, model, signal }));
  return (await Promise.all(asked)).flatMap(({ answer }) =>
    answer.results.map(({ score, error }) => {
      if (error?.code === "unknown_word") throw new Error(error.detail);
      return score ?? 0;
    }),
  );
}

/**
 * A symmetric matrix with 1 on its diagonal, rows and columns in the order of the words.
 * @returns {Promise<number[][]>}
 */
export async function similarities(words, service) {
  const pairs = words.flatMap((one, index) => words.slice(index + 1).map((other) => [one, other]));
  const matrix = words.map((_, row) => words.map((_, column) => (row === column ? 1 : 0)));
  const scores = await ofPairs(pairs, service);
  let next = 0;
  for (let row = 0; row < words.length; row += 1) {
    for (let column = row + 1; column < words.length; column += 1) {
      matrix[row][column] = matrix[column][row] = scores[next];
      next += 1;
    }
  }
  return matrix;
}

/** The matrix with one more point in front, with these similarities to the others. */
export function withCenter(matrix, scores) {
  return [[1, ...scores.slice(0, matrix.length)], ...matrix.map((row, index) => [scores[index], ...row])];
}

/**
 * Scales similarities from their minimum (0) to their maximum (1). If all are equal, they are returned unchanged.
 */
export function stretched(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return (value) => Math.min(Math.max(most > least ? (value - least) / (most - least) : value, 0), 1);
}
