/**
 * The plane that keeps most of the variance of some points, from their similarities alone.
 *
 * The similarities of unit vectors are their dot products, S. Centred on both sides, B = J S J with
 * J = I − 1/n, they are the dot products of the vectors less their mean, and the eigenvectors of B, times the
 * roots of their eigenvalues, are the coordinates of a principal component analysis (Gower 1966, "Some distance
 * properties of latent root and vector methods used in multivariate analysis").
 */

/**
 * @param {number[][]} similarities symmetric
 * @returns {{points: number[][], shown: number}} two coordinates for each, and the share of the variance, from 0
 *   to 1, that the two show
 */
export function plane(similarities) {
  const size = similarities.length;
  const mean = (row) => row.reduce((sum, value) => sum + value, 0) / size;
  const means = similarities.map(mean);
  const all = mean(means);
  const centred = similarities.map((row, i) => row.map((value, j) => value - means[i] - means[j] + all));
  const { values, vectors } = eigen(centred);
  const order = values.map((_, index) => index).sort((a, b) => values[b] - values[a]);
  const positive = values.map((value) => Math.max(value, 0));
  const total = positive.reduce((sum, value) => sum + value, 0);
  const axes = [order[0], order[1] ?? order[0]].map((index) => {
    const axis = vectors.map((row) => row[index] * Math.sqrt(positive[index]));
    // The sign of an eigenvector is arbitrary: put the first word at the top left.
    return axis[0] > 0 ? axis.map((value) => -value) : axis;
  });
  const shown = total > 0 ? (positive[order[0]] + (size > 2 ? positive[order[1]] : 0)) / total : 1;
  return { points: axes[0].map((x, index) => [x, size > 2 ? axes[1][index] : 0]), shown };
}

/** Eigenvalues and eigenvectors (in columns) of a symmetric matrix, by Jacobi's rotations (cyclic, 1846). */
function eigen(matrix) {
  const size = matrix.length;
  const a = matrix.map((row) => [...row]);
  const vectors = a.map((_, i) => a.map((_, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep += 1) {
    let off = 0;
    for (let p = 0; p < size; p += 1) for (let q = p + 1; q < size; q += 1) off += a[p][q] ** 2;
    if (off < 1e-24) break;
    for (let p = 0; p < size; p += 1) {
      for (let q = p + 1; q < size; q += 1) if (a[p][q] !== 0) rotate(a, vectors, p, q);
    }
  }
  return { values: a.map((row, index) => row[index]), vectors };
}

/** Rotates the plane of two axes so that the element between them becomes 0. */
function rotate(a, vectors, p, q) {
  const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const cosine = 1 / Math.hypot(t, 1);
  const sine = t * cosine;
  const turn = (row) => {
    const [x, y] = [row[p], row[q]];
    row[p] = cosine * x - sine * y;
    row[q] = sine * x + cosine * y;
  };
  for (const row of a) turn(row);
  for (let k = 0; k < a.length; k += 1) {
    const [x, y] = [a[p][k], a[q][k]];
    a[p][k] = cosine * x - sine * y;
    a[q][k] = sine * x + cosine * y;
  }
  for (const row of vectors) turn(row);
}

/**
 * The lines that join all points with the smallest total distance (minimum spanning tree, Prim 1957).
 * @param {number[][]} similarities the distance of a pair is 1 less its similarity
 * @returns {number[][]} pairs of indices
 */
export function spanningTree(similarities) {
  const left = new Set(similarities.keys());
  left.delete(0);
  const nearest = similarities[0]?.map((similarity) => ({ similarity, from: 0 })) ?? [];
  const lines = [];
  while (left.size > 0) {
    const next = [...left].reduce((best, index) => (nearest[index].similarity > nearest[best].similarity ? index : best));
    left.delete(next);
    lines.push([nearest[next].from, next]);
    for (const index of left) {
      const similarity = similarities[next][index];
      if (similarity > nearest[index].similarity) nearest[index] = { similarity, from: next };
    }
  }
  return lines;
}
