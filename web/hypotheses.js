// Tests that coefficients are zero: one hypothesis has one p-value, wherever it is asked for. As dpgram.inference.hypotheses.

import { gainBelow } from "./channel.js";
import { eigenSymmetric } from "./eigen.js";
import { DOUBTFUL } from "./intervals.js";
import { apply, dot, identity, qr, solve, transpose } from "./linalg.js";
import { exactly, farOut, locally, profile } from "./pivot.js";
import { pValue } from "./special.js";

// Of the hypothesis that a coefficient or a combination is zero, by the test `of`; null stands for Wald's.
export function statistic(of, { row, base, se, estimate }) {
  if (of === null) return estimate === 0 ? 0 : (estimate / se) ** 2;
  if (estimate * (-base - dot(row, of.estimate)) >= 0) return 0; // between the estimate and what the test rejects least
  return Math.min(profile(of, [row], [-base]), farOut(of));
}

// That the coefficients at `places` are all zero. What the release says too little about takes no part.
export function jointTest(seen, known, places, intervals) {
  let rows = places.map((j) => seen.toOwn[j]);
  let wanted = places.map((j) => -seen.base[j]);
  let of = intervals === "fieller" ? exactly(seen, known) : null;
  if (intervals === "auto") {
    const root = known.spent.map(Math.sqrt);
    const { q, r } = qr(transpose(rows.map((row) => row.map((value, j) => value * root[j]))));
    const axes = knownAxes(q, seen.hidden);
    if (axes.length) {
      const back = transpose(r);
      const turned = (values) => {
        const inside = solve(back, values);
        return axes.map((axis) => dot(axis, inside));
      };
      const columns = transpose(rows).map(turned);
      [rows, wanted] = [transpose(columns), turned(wanted)];
      const kept = q.map((line) => axes.map((axis) => dot(line, axis)));
      if (knownAxes(kept, gainBelow(seen, DOUBTFUL)).length < axes.length) of = locally(seen, known);
    } else of = exactly(seen, known);
  }
  const found = of === null ? wald(seen, known, rows, wanted) : profile(of, rows, wanted);
  return { statistic: found, degrees: rows.length, pValue: pValue(found, rows.length, seen.degrees) };
}

// The combinations of orthonormal columns that owe at most half of their variance to what is hidden, each as an array.
function knownAxes(columns, hidden) {
  const count = columns[0].length;
  if (!hidden.includes(true)) return identity(count);
  const lost = transpose(columns.filter((_, i) => hidden[i]));
  const { values, vectors } = eigenSymmetric(lost.map((left) => Float64Array.from(lost, (right) => dot(left, right))));
  return transpose(vectors).filter((_, k) => values[k] <= 0.5);
}

// How far the estimate is from the restrictions, in units of its covariance.
function wald(seen, known, rows, wanted) {
  const along = rows.map((row) => dot(row, known.along));
  const turn = transpose(seen.toOwn);
  const leaning = seen.byClipping > 0 ? rows.map((row) => apply(turn, solve(turn, row).map((value, i) => value * seen.leaning[i]))) : rows;
  const weighed = (left, right, weights) => left.reduce((total, value, j) => total + value * weights[j] * right[j], 0);
  const covariance = rows.map((left, a) => Float64Array.from(rows, (right, b) =>
    weighed(left, right, known.byNoiseAndRows) + weighed(leaning[a], leaning[b], known.byClipping) + seen.spread * along[a] * along[b]));
  const scale = covariance.map((row, a) => Math.sqrt(row[a]));
  const away = wanted.map((value, a) => (value - dot(rows[a], seen.estimate)) / scale[a]);
  return dot(away, solve(covariance.map((row, a) => row.map((value, b) => value / scale[a] / scale[b])), away));
}
