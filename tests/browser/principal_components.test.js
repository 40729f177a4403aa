/** crates/server/explorer/principal_components.js against matrices whose answers are known. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { explorerModule } from "./support/module.js";

const { plane, spanningTree } = await explorerModule("principal_components.js");

const close = (one, other, by = 1e-9) => assert.ok(Math.abs(one - other) <= by, `${one} ${other}`);

/** Numbers from −1 to 1 that are the same each time (Marsaglia's xorshift). */
function numbers(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state / 2 ** 31;
  };
}

const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
const products = (vectors) => vectors.map((x) => vectors.map((y) => dot(x, y)));
const apart = (x, y) => Math.hypot(...x.map((value, i) => value - y[i]));

test("points that lie in a plane keep all their distances", () => {
  const next = numbers(7);
  for (const size of [3, 4, 10, 31]) {
    const [a, b, c] = [0, 1, 2].map(() => Array.from({ length: 20 }, next));
    const vectors = Array.from({ length: size }, () => [next(), next()]).map(([s, t]) => c.map((value, i) => value + s * a[i] + t * b[i]));
    const { points, shown } = plane(products(vectors));
    close(shown, 1);
    for (let i = 0; i < size; i += 1) {
      for (let j = 0; j < size; j += 1) close(apart(points[i], points[j]), apart(vectors[i], vectors[j]), 1e-6);
    }
  }
});

test("the axes are the eigenvectors of the largest eigenvalues", () => {
  // Along axes of their own, at ±a, ±b, ±c: the variances are 2a², 2b² and 2c².
  const vectors = [[3, 0, 0], [-3, 0, 0], [0, 2, 0], [0, -2, 0], [0, 0, 1], [0, 0, -1]];
  const { points, shown } = plane(products(vectors));
  close(shown, (18 + 8) / (18 + 8 + 2));
  const wanted = [[-3, 0], [3, 0], [0, 2], [0, 2], [0, 0], [0, 0]];
  points.forEach(([x, y], place) => {
    close(x, wanted[place][0]);
    close(Math.abs(y), wanted[place][1]);
  });
  close(points[2][1], -points[3][1]);
});

test("no plane shows more: the variance left out is the sum of the other eigenvalues", () => {
  const next = numbers(99);
  const vectors = Array.from({ length: 31 }, () => Array.from({ length: 50 }, next));
  const units = vectors.map((x) => x.map((value) => value / Math.hypot(...x)));
  const { points, shown } = plane(products(units));
  const mean = units[0].map((_, i) => units.reduce((sum, x) => sum + x[i], 0) / units.length);
  const all = units.reduce((sum, x) => sum + apart(x, mean) ** 2, 0);
  const kept = points.reduce((sum, [x, y]) => sum + x * x + y * y, 0);
  close(kept / all, shown, 1e-9);
  // Principal axes are at right angles and have no covariance.
  close(points.reduce((sum, [x, y]) => sum + x * y, 0), 0, 1e-9);
  // By power iteration, another way to the largest eigenvalue.
  const centred = products(units.map((x) => x.map((value, i) => value - mean[i])));
  let vector = centred.map(() => next());
  for (let i = 0; i < 3000; i += 1) {
    const image = centred.map((row) => dot(row, vector));
    vector = image.map((value) => value / Math.hypot(...image));
  }
  close(points.reduce((sum, [x]) => sum + x * x, 0), dot(vector, centred.map((row) => dot(row, vector))), 1e-6);
});

test("one point, two points, equal points and opposite ones", () => {
  assert.deepEqual(plane([[1]]).points.map((point) => point.map(Math.abs)), [[0, 0]]);
  const two = plane([[1, 0.5], [0.5, 1]]);
  close(apart(...two.points), 1);
  close(two.shown, 1);
  close(apart(...plane([[1, -1], [-1, 1]]).points), 2);
  for (const point of plane([[1, 1, 1], [1, 1, 1], [1, 1, 1]]).points) point.forEach((value) => close(value, 0));
});

/** The weight of the lightest tree that joins all places, by trying every one (Prüfer's sequences). */
function lightest(similarities) {
  const size = similarities.length;
  let best = Infinity;
  for (let code = 0; code < size ** (size - 2); code += 1) {
    const sequence = Array.from({ length: size - 2 }, (_, i) => Math.floor(code / size ** i) % size);
    const degree = Array.from({ length: size }, (_, place) => 1 + sequence.filter((other) => other === place).length);
    let weight = 0;
    for (const place of sequence) {
      const leaf = degree.indexOf(1);
      weight += 1 - similarities[leaf][place];
      degree[leaf] -= 1;
      degree[place] -= 1;
    }
    const [one, other] = degree.flatMap((left, place) => (left === 1 ? [place] : []));
    best = Math.min(best, weight + 1 - similarities[one][other]);
  }
  return best;
}

test("the lines join all points and none is shorter in all", () => {
  const next = numbers(3);
  for (const size of [2, 3, 4, 5, 6]) {
    for (let round = 0; round < 5; round += 1) {
      const matrix = Array.from({ length: size }, () => Array(size).fill(1));
      for (let i = 0; i < size; i += 1) for (let j = 0; j < i; j += 1) matrix[i][j] = matrix[j][i] = next();
      const lines = spanningTree(matrix);
      assert.equal(lines.length, size - 1);
      const reached = new Set([0]);
      for (let again = 0; again < size; again += 1) {
        for (const [from, to] of lines) if (reached.has(from) || reached.has(to)) reached.add(from).add(to);
      }
      assert.equal(reached.size, size);
      close(lines.reduce((sum, [from, to]) => sum + 1 - matrix[from][to], 0), lightest(matrix));
    }
  }
  assert.deepEqual(spanningTree([[1]]), []);
  assert.deepEqual(spanningTree([]), []);
});
