import assert from "node:assert/strict";
import test from "node:test";
import { eigenSymmetric } from "../eigen.js";
import { identity, inverse, multiply, qr, solve, apply, transpose } from "../linalg.js";

// A generator of our own, so that every run sees the same matrices.
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296 - 0.5;
  };
}

function matrix(rows, columns, seed = 1) {
  const next = random(seed);
  return Array.from({ length: rows }, () => Float64Array.from({ length: columns }, next));
}

const symmetric = (n, seed) => multiply(matrix(n, n, seed), transpose(matrix(n, n, seed + 1))).map((row, i, all) => row.map((_, j) => all[i][j] + all[j][i]));

function assertClose(a, b, tolerance = 1e-12) {
  a.forEach((row, i) => row.forEach((value, j) => assert.ok(Math.abs(value - b[i][j]) <= tolerance, `${i},${j}: ${value} and ${b[i][j]}`)));
}

for (const n of [1, 2, 3, 20, 61]) {
  test(`eigenvectors of a symmetric matrix of ${n} rows are orthonormal and give it back`, () => {
    const a = symmetric(n, n);
    const { values, vectors } = eigenSymmetric(a);
    assert.deepEqual([...values], [...values].sort((x, y) => x - y));
    assertClose(multiply(transpose(vectors), vectors), identity(n));
    assertClose(multiply(vectors.map((row) => row.map((value, j) => value * values[j])), transpose(vectors)), a, 1e-11);
  });
}

test("eigenvalues of projections are zero and one, and are found", () => {
  for (let seed = 1; seed <= 12; seed++) {
    const { q } = qr(matrix(120, 60, seed));
    const { values } = eigenSymmetric(multiply(q, transpose(q)));
    values.forEach((value, k) => assert.ok(Math.abs(value - Number(k >= 60)) < 1e-12));
  }
});

test("eigenvalues that are equal, zero or far apart are found", () => {
  assert.deepEqual([...eigenSymmetric(identity(5)).values], [1, 1, 1, 1, 1]);
  assert.deepEqual([...eigenSymmetric([[0, 0], [0, 0]].map((row) => Float64Array.from(row))).values], [0, 0]);
  const { values } = eigenSymmetric([[1e12, 1, 0], [1, 2, 0], [0, 0, -3]].map((row) => Float64Array.from(row)));
  assert.ok(Math.abs(values[0] + 3) < 1e-3 && Math.abs(values[1] - 2) < 1e-3 && Math.abs(values[2] / 1e12 - 1) < 1e-15);
});

test("a tall matrix is an orthonormal one times a triangle with a positive diagonal", () => {
  const a = matrix(30, 9);
  const { q, r } = qr(a);
  assertClose(multiply(q, r), a);
  assertClose(multiply(transpose(q), q), identity(9));
  r.forEach((row, i) => row.forEach((value, j) => assert.ok(j < i ? value === 0 : i !== j || value > 0)));
});

test("equations are solved, and a singular matrix is said to be so", () => {
  const a = matrix(12, 12, 5);
  const x = Float64Array.from({ length: 12 }, (_, i) => i - 3);
  assertClose([solve(a, apply(a, x))], [x], 1e-9);
  assertClose(multiply(inverse(a), a), identity(12), 1e-9);
  assert.equal(solve([[1, 2], [2, 4]].map((row) => Float64Array.from(row)), [1, 1]), null);
});
