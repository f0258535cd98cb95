// Eigenvalues and eigenvectors of a symmetric matrix: Householder's reduction to a tridiagonal one, then the implicit QL method
// (Martin, Reinsch and Wilkinson 1968; Golub and Van Loan, chapter 8).

import { identity, norm, transpose } from "./linalg.js";

const MOST_SWEEPS = 60; // two or three are usual for each eigenvalue

// { values, vectors }: values from the smallest up, vectors[i][k] the i-th entry of the k-th eigenvector.
export function eigenSymmetric(matrix) {
  const n = matrix.length;
  if (n === 0) return { values: new Float64Array(0), vectors: [] };
  const { diagonal, off, axes } = tridiagonal(matrix);
  implicitQL(diagonal, off, axes);
  const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[i] - diagonal[j]);
  return { values: Float64Array.from(order, (k) => diagonal[k]), vectors: transpose(order.map((k) => axes[k])) };
}

// The diagonal, the entries beside it (off[i] couples i and i + 1) and the axes, one in each row, in which the matrix has this form.
function tridiagonal(matrix) {
  const n = matrix.length;
  const a = matrix.map((row, i) => Float64Array.from(row, (_, j) => (i >= j ? matrix[i][j] : matrix[j][i]))); // the lower half counts
  const axes = identity(n);
  for (let k = 0; k < n - 2; k++) {
    const mirror = new Float64Array(n);
    for (let i = k + 1; i < n; i++) mirror[i] = a[i][k];
    const size = norm(mirror);
    if (size === 0) continue;
    mirror[k + 1] += mirror[k + 1] > 0 ? size : -size;
    let square = 0;
    for (let i = k + 1; i < n; i++) square += mirror[i] * mirror[i];
    if (!(square > 0)) continue;
    const moved = new Float64Array(n); // 2 a mirror / square
    for (let i = k; i < n; i++) {
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += a[i][j] * mirror[j];
      moved[i] = (2 * sum) / square;
    }
    let along = 0;
    for (let i = k + 1; i < n; i++) along += mirror[i] * moved[i];
    along /= square;
    for (let i = k; i < n; i++) moved[i] -= along * mirror[i];
    for (let i = k; i < n; i++) for (let j = k; j < n; j++) a[i][j] -= mirror[i] * moved[j] + moved[i] * mirror[j];
    const shadow = new Float64Array(n); // mirror' axes
    for (let j = k + 1; j < n; j++) for (let i = 0; i < n; i++) shadow[i] += mirror[j] * axes[j][i];
    for (let j = k + 1; j < n; j++) {
      const factor = (2 * mirror[j]) / square;
      for (let i = 0; i < n; i++) axes[j][i] -= factor * shadow[i];
    }
  }
  return {
    diagonal: Float64Array.from(a, (row, i) => row[i]),
    off: Float64Array.from({ length: n }, (_, i) => (i + 1 < n ? a[i + 1][i] : 0)),
    axes,
  };
}

// An entry beside the diagonal is nothing where it adds nothing to its neighbours on the diagonal. Both of these may be rounding errors around
// zero, as of a projection: it is nothing, too, where it is a rounding error of the whole matrix.
function implicitQL(diagonal, off, axes) {
  const n = diagonal.length;
  const rounding = (Number.EPSILON / 2) * diagonal.reduce((most, value, i) => Math.max(most, Math.abs(value) + Math.abs(off[i])), 0);
  for (let start = 0; start < n; start++) {
    for (let sweep = 0; ; sweep++) {
      let end = start;
      for (; end + 1 < n; end++) {
        const size = Math.abs(diagonal[end]) + Math.abs(diagonal[end + 1]);
        if (size + Math.abs(off[end]) === size || Math.abs(off[end]) <= rounding) break;
      }
      if (end === start) break;
      if (sweep === MOST_SWEEPS) throw new Error("the eigenvalues of a matrix were not found");
      let g = (diagonal[start + 1] - diagonal[start]) / (2 * off[start]);
      let r = Math.hypot(g, 1);
      g = diagonal[end] - diagonal[start] + off[start] / (g + (g >= 0 ? r : -r));
      let sine = 1;
      let cosine = 1;
      let p = 0;
      let i = end - 1;
      for (; i >= start; i--) {
        let f = sine * off[i];
        const b = cosine * off[i];
        r = Math.hypot(f, g);
        off[i + 1] = r;
        if (r === 0) {
          diagonal[i + 1] -= p;
          off[end] = 0;
          break;
        }
        sine = f / r;
        cosine = g / r;
        g = diagonal[i + 1] - p;
        r = (diagonal[i] - g) * sine + 2 * cosine * b;
        p = sine * r;
        diagonal[i + 1] = g + p;
        g = cosine * r - b;
        const [first, second] = [axes[i], axes[i + 1]];
        for (let j = 0; j < n; j++) {
          f = second[j];
          second[j] = sine * first[j] + cosine * f;
          first[j] = cosine * first[j] - sine * f;
        }
      }
      if (r === 0 && i >= start) continue;
      diagonal[start] -= p;
      off[start] = g;
      off[end] = 0;
    }
  }
}
