// Dense linear algebra on small matrices. A matrix is an array of rows, each a Float64Array; nothing is changed in place
// unless a name says so.

export const zeros = (rows, columns) => Array.from({ length: rows }, () => new Float64Array(columns));

export function identity(n) {
  const found = zeros(n, n);
  for (let i = 0; i < n; i++) found[i][i] = 1;
  return found;
}

export const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

export const norm = (a) => Math.sqrt(dot(a, a));

export const apply = (matrix, vector) => Float64Array.from(matrix, (row) => dot(row, vector));

export function transpose(a) {
  const found = zeros(a.length ? a[0].length : 0, a.length);
  a.forEach((row, i) => row.forEach((value, j) => (found[j][i] = value)));
  return found;
}

export function multiply(a, b) {
  const width = b.length ? b[0].length : 0;
  return a.map((row) => {
    const out = new Float64Array(width);
    for (let k = 0; k < row.length; k++) {
      const factor = row[k];
      if (factor !== 0) for (let j = 0; j < width; j++) out[j] += factor * b[k][j];
    }
    return out;
  });
}

export const addToDiagonal = (a, value) => a.map((row, i) => row.map((x, j) => (i === j ? x + value : x)));

// x with a x = b for a matrix b of right-hand sides, by Gauss with partial pivoting. Null where a is exactly singular.
export function solveMatrix(a, b) {
  const n = a.length;
  const left = a.map((row) => Float64Array.from(row));
  const right = b.map((row) => Float64Array.from(row));
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(left[i][k]) > Math.abs(left[pivot][k])) pivot = i;
    if (left[pivot][k] === 0) return null;
    [left[k], left[pivot]] = [left[pivot], left[k]];
    [right[k], right[pivot]] = [right[pivot], right[k]];
    for (let i = k + 1; i < n; i++) {
      const factor = left[i][k] / left[k][k];
      if (factor === 0) continue;
      for (let j = k; j < n; j++) left[i][j] -= factor * left[k][j];
      for (let j = 0; j < right[i].length; j++) right[i][j] -= factor * right[k][j];
    }
  }
  for (let k = n - 1; k >= 0; k--) {
    for (let i = k + 1; i < n; i++) {
      const factor = left[k][i];
      if (factor !== 0) for (let j = 0; j < right[k].length; j++) right[k][j] -= factor * right[i][j];
    }
    for (let j = 0; j < right[k].length; j++) right[k][j] /= left[k][k];
  }
  return right;
}

export function solve(a, b) {
  const found = solveMatrix(a, Array.from(b, (value) => Float64Array.of(value)));
  return found && Float64Array.from(found, (row) => row[0]);
}

export const inverse = (a) => solveMatrix(a, identity(a.length));

// { q, r } with a = q r, q (rows, columns) orthonormal, r upper triangular with a diagonal that is not negative. Householder. When `full`, q has
// as many columns as rows: the further ones are orthogonal to all columns of a.
export function qr(a, full = false) {
  const rows = a.length;
  const columns = a[0].length;
  const work = a.map((row) => Float64Array.from(row));
  const mirrors = [];
  for (let k = 0; k < columns; k++) {
    const mirror = new Float64Array(rows);
    for (let i = k; i < rows; i++) mirror[i] = work[i][k];
    const size = norm(mirror);
    mirror[k] += mirror[k] > 0 ? size : -size;
    const square = dot(mirror, mirror);
    mirrors.push([mirror, square]);
    if (square > 0) reflect(work, mirror, square, k, columns);
  }
  const width = full ? rows : columns;
  const q = zeros(rows, width);
  for (let k = 0; k < width; k++) q[k][k] = 1;
  for (let k = columns - 1; k >= 0; k--) if (mirrors[k][1] > 0) reflect(q, ...mirrors[k], 0, width);
  const r = zeros(columns, columns);
  for (let i = 0; i < columns; i++) {
    const sign = work[i][i] < 0 ? -1 : 1;
    for (let j = i; j < columns; j++) r[i][j] = sign * work[i][j];
    for (let j = 0; j < rows; j++) q[j][i] *= sign;
  }
  return { q, r };
}

// The columns from..to of `target`, mirrored; row by row, as the matrix lies in memory.
function reflect(target, mirror, square, from, to) {
  const along = new Float64Array(to);
  for (let i = 0; i < mirror.length; i++) {
    if (mirror[i] !== 0) for (let j = from; j < to; j++) along[j] += mirror[i] * target[i][j];
  }
  for (let i = 0; i < mirror.length; i++) {
    const factor = (2 * mirror[i]) / square;
    if (factor !== 0) for (let j = from; j < to; j++) target[i][j] -= factor * along[j];
  }
}
