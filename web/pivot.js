// The test behind Fieller's intervals: how far observations are from what given coefficients predict, made as small as possible over all
// coefficients with given values of some combinations. As dpgram.inference.pivot, one problem at a time.

import { noiseVariance } from "./channel.js";
import { apply, dot, qr, solve, transpose } from "./linalg.js";

const ITERATIONS = 80;
const LOOSE = 1e-6; // of what a change along the weakest direction counts, where a search starts far out
const LOWER = 0.99; // of what was found: a start that is no lower leads to the same valley, or to one that is as deep
const SMALLEST = 2.2250738585072014e-308; // positive and normal
const FADED = 1e-9; // what is left of the noise's dependence on coefficients that are seen to first order

// What the test knows of a regression: all directions as they are.
export const exactly = ({ observed, gain, weight, label, spread, debiased }, { byTable }) =>
  ({ observed, gain, weight, label, spread, estimate: observed.map((value, i) => value / debiased[i]), byTable });

// Directions whose gain may be zero as Wald's intervals take them: their coefficients are of plausible size.
export function locally(seen, known) {
  const { hidden: weak, weight, spread, estimate, divisor, left } = seen;
  if (!weak.includes(true)) return exactly(seen, known);
  let inside = 0;
  estimate.forEach((b, i) => (inside += weak[i] ? weight[i] * (b ** 2 + left[i]) : 0));
  return {
    ...exactly(seen, known),
    estimate,
    gain: seen.gain.map((g, i) => (weak[i] ? divisor[i] : g)),
    weight: weight.map((w, i) => (weak[i] ? FADED * w : w)),
    byTable: known.byTable.map((value, i) => (weak[i] ? left[i] * divisor[i] ** 2 : value + weight[i] * spread * inside)),
  };
}

// The least that the statistic tends to where coefficients go to infinity. True gains are not negative.
export const farOut = ({ gain, weight, spread }) =>
  gain.reduce((least, g, i) => Math.min(least, Math.max(g, 0) ** 2 / (2 * spread * weight[i] ** 2)), Infinity);

// The squared distance at b, its gradient, and the covariance's diagonal part.
function statistic(of, b) {
  const { weight, spread, gain, observed, byTable } = of;
  const p = b.length;
  const diagonal = noiseVariance(of, b);
  let [inner, shadedSum, plain] = [0, 0, 0];
  const along = new Float64Array(p);
  const whitened = new Float64Array(p);
  const shaded = new Float64Array(p);
  for (let i = 0; i < p; i++) {
    diagonal[i] += byTable[i];
    const residual = observed[i] - gain[i] * b[i];
    along[i] = weight[i] * b[i];
    whitened[i] = residual / diagonal[i];
    shaded[i] = along[i] / diagonal[i];
    inner += along[i] * whitened[i];
    shadedSum += along[i] * shaded[i];
    plain += residual * whitened[i];
  }
  const share = (spread * inner) / (1 + spread * shadedSum); // Sherman and Morrison
  let [growth, slope] = [0, 0];
  const solved = whitened; // renamed: whitened less share times shaded
  for (let i = 0; i < p; i++) {
    solved[i] -= share * shaded[i];
    growth += weight[i] * solved[i] * solved[i];
    slope += along[i] * solved[i];
  }
  const gradient = new Float64Array(p);
  for (let i = 0; i < p; i++) {
    gradient[i] = -2 * gain[i] * solved[i] - 2 * spread * weight[i] * (growth * b[i] + slope * solved[i]);
  }
  return { distance: plain - share * inner, gradient, diagonal };
}

// The smallest statistic over all b with combination @ b = value for each of `combinations`; stops as soon as it is at most `enough`.
// Far from the estimate there may be several valleys: the search starts at the nearest point, and once more along the direction whose gain is
// weakest where that is clearly lower than what was found.
export function profile(of, combinations, values, enough = 0) {
  const first = noiseVariance(of, of.estimate);
  const plain = of.gain.map((g, i) => g ** 2 / (first[i] + of.byTable[i]));
  const middle = median(plain);
  const metric = plain.map((m) => m + 1e-3 * middle + SMALLEST);
  const { start, along } = feasible(of.estimate, combinations, values);
  const least = descended(of, start(metric), along, enough);
  if (least <= enough) return least;
  const weakest = smallest(of.gain.map((g, i) => (g / of.weight[i]) ** 2));
  const far = start(metric.map((m, i) => (i === weakest ? LOOSE * m : m)));
  if (!(statistic(of, far).distance < LOWER * least)) return least;
  return Math.min(least, descended(of, far, along, enough));
}

// The smallest statistic that steps from b lead to.
function descended(of, b, along, enough) {
  const p = b.length;
  const metric = new Float64Array(p);
  let { distance: best, gradient, diagonal } = statistic(of, b);
  let damping = 1e-3;
  for (let k = 0; k < ITERATIONS; k++) {
    let largest = 0;
    for (let i = 0; i < p; i++) {
      metric[i] = (of.gain[i] * of.gain[i]) / diagonal[i];
      if (metric[i] > largest) largest = metric[i];
    }
    const step = new Float64Array(p);
    for (let i = 0; i < p; i++) {
      metric[i] += damping * largest + SMALLEST;
      step[i] = -gradient[i] / 2 / metric[i];
    }
    const next = along(metric, step);
    for (let i = 0; i < p; i++) next[i] += b[i];
    const tried = statistic(of, next);
    const better = tried.distance < best;
    const settled =
      (better && best - tried.distance < 1e-7 * (1 + best)) || damping > 1e7 || Math.min(best, tried.distance) <= enough;
    if (better) {
      b = next;
      ({ distance: best, gradient, diagonal } = tried);
    }
    damping = better ? Math.max(damping / 4, 1e-12) : Math.min(damping * 6, 1e8);
    if (settled) break;
  }
  return best;
}

// { start, along }: of the b that meet the constraints, the one nearest to `estimate` in a metric; and of a step, the part that keeps to them.
// Where constraints are many, what they leave free is the smaller matrix.
function feasible(estimate, combinations, values) {
  if (2 * combinations.length > estimate.length) return byFreedom(estimate, combinations, values);
  return {
    start: (metric) => {
      const lift = lifted(combinations, metric, combinations.map((row, c) => values[c] - dot(row, estimate)));
      return estimate.map((value, i) => value + lift[i]);
    },
    along: (metric, step) => {
      const found = lifted(combinations, metric, combinations.map((row) => dot(row, step)));
      for (let i = 0; i < step.length; i++) found[i] = step[i] - found[i];
      return found;
    },
  };
}

// The shortest change of b, in `metric`, that moves the combinations by `gap`.
function lifted(combinations, metric, gap) {
  if (combinations.length === 1) return liftedOne(combinations[0], metric, gap[0]);
  const over = combinations.map((row) => row.map((value, i) => value / metric[i]));
  const inner = over.map((left) => Float64Array.from(combinations, (right) => dot(left, right)));
  const factors = solve(inner, gap);
  const found = new Float64Array(metric.length);
  over.forEach((row, c) => row.forEach((value, i) => (found[i] += value * factors[c])));
  return found;
}

// The same for one combination, which is what intervals ask for, thousands of times.
function liftedOne(combination, metric, gap) {
  const found = new Float64Array(metric.length);
  let inner = 0;
  for (let i = 0; i < metric.length; i++) {
    found[i] = combination[i] / metric[i];
    inner += found[i] * combination[i];
  }
  for (let i = 0; i < metric.length; i++) found[i] *= gap / inner;
  return found;
}

function byFreedom(estimate, combinations, values) {
  const c = combinations.length;
  const scaled = combinations.map((row) => Math.sqrt(dot(row, row))); // combinations may have any units
  const { q, r } = qr(transpose(combinations.map((row, k) => row.map((value) => value / scaled[k]))), true);
  const inside = solve(transpose(r), values.map((value, k) => value / scaled[k]));
  const point = apply(q.map((row) => row.slice(0, c)), inside); // meets the constraints
  const free = transpose(q.map((row) => row.slice(c))); // directions in which they still hold
  const along = (metric, step) => {
    const found = new Float64Array(step.length);
    if (!free.length) return found;
    const over = free.map((row) => row.map((value, i) => value * metric[i]));
    const factors = solve(over.map((left) => Float64Array.from(free, (right) => dot(left, right))), over.map((row) => dot(row, step)));
    free.forEach((row, k) => row.forEach((value, i) => (found[i] += value * factors[k])));
    return found;
  };
  const start = (metric) => {
    const within = along(metric, estimate.map((value, i) => value - point[i]));
    return point.map((value, i) => value + within[i]);
  };
  return { start, along };
}

// The place of the smallest value.
function smallest(values) {
  let place = 0;
  for (let i = 1; i < values.length; i++) if (values[i] < values[place]) place = i;
  return place;
}

function median(values) {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
