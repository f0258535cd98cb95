// Intervals that count the privacy noise, around the debiased estimate: Wald's, Fieller's, and of the two what is right for each
// coefficient. As dpgram.inference.intervals, whose docstring says what is assumed.

import { errorSquares, inOwnUnits, noiseVariance } from "./channel.js";
import { dot } from "./linalg.js";
import { profile } from "./pivot.js";
import { quantile } from "./special.js";

const FAR = 1e4; // standard errors; a set that reaches so far is unbounded
const STEPS = [0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 10, 20, 50, 200, 1000, FAR];
const WEAK = 1.96; // a gain below so many sds of its noise may be zero
const DOUBTFUL = 4; // below so many, first order is not good enough where better can be had
const HALVINGS = 12;
const sum = (values) => values.reduce((total, value) => total + value, 0);

// Variance of the errors of the unit label, floored at zero.
export const errorVariance = (seen) => Math.max(errorSquares(seen), 0) / rowsLeft(seen, seen.rows);

// By what to divide squares that so many rows left unexplained: each coefficient takes as many rows as the design effect says.
export const rowsLeft = (seen, rows) => Math.max(rows - seen.designEffect * seen.gain.length, seen.designEffect);

// The privacy noise's variance in each direction, without the rank-one part, at the size that coefficients have before noise.
function noiseVariances(seen) {
  const { estimate: b, weight, debiased, label, spread } = seen;
  const size = sum(weight.map((w, i) => w * b[i] ** 2));
  let diagonal = weight.map((w) => w * (label + spread * size));
  for (let k = 0; k < 3; k++) {
    const own = diagonal.map((v, i) => v / debiased[i] ** 2 + spread * ((weight[i] * b[i]) / debiased[i]) ** 2);
    const excess = sum(weight.map((w, i) => w * own[i]));
    diagonal = weight.map((w) => w * (label + spread * Math.max(size - excess, size / 4)));
  }
  return diagonal;
}

// Covariance of the debiased coefficients in own units, as a function: variance(row) for any combination of coefficients.
export function uncertainty(seen) {
  const variance = errorVariance(seen);
  const noise = noiseVariances(seen);
  const byRows = seen.perRow.map((v) => seen.designEffect * variance * v);
  const p = noise.length;
  const rows = seen.toOwn.map((row) => row.map((value, j) => value / seen.debiased[j]));
  const along = rows.map((row) => {
    let total = 0;
    for (let j = 0; j < p; j++) total += row[j] * (seen.weight[j] * seen.estimate[j]);
    return total;
  });
  const parts = (combination) => {
    const row = new Float64Array(p);
    combination.forEach((factor, i) => {
      if (factor !== 0) for (let j = 0; j < p; j++) row[j] += factor * rows[i][j];
    });
    let [privacy, sampling, clipping] = [seen.spread * dot(combination, along) ** 2, 0, 0];
    for (let j = 0; j < p; j++) {
      privacy += row[j] ** 2 * noise[j];
      sampling += row[j] ** 2 * byRows[j];
      clipping += row[j] ** 2 * seen.byClipping;
    }
    return { privacy, sampling, clipping, whole: privacy + sampling + clipping };
  };
  const own = rows.map((_, i) => parts(Float64Array.from({ length: p }, (_, j) => (i === j ? 1 : 0))));
  return {
    variance,
    parts,
    byTable: byRows.map((v) => v + seen.byClipping), // the variance in what was observed that is no noise
    se: own.map((v) => Math.sqrt(v.whole)),
    sePrivacy: own.map((v) => Math.sqrt(v.privacy)),
    seSampling: own.map((v) => Math.sqrt(v.sampling)),
    seClipping: own.map((v) => Math.sqrt(v.clipping)),
  };
}

export function wald(seen, known, confidence) {
  const reach = quantile(confidence, seen.degrees);
  return Array.from(inOwnUnits(seen, seen.estimate), (b, i) => ({
    lower: b - reach * known.se[i], upper: b + reach * known.se[i], method: "wald",
  }));
}

// The interval of the coefficient at `place` by test inversion.
function fiellerOne(seen, known, confidence, place) {
  const estimate = dot(seen.toOwn[place], seen.estimate) + seen.base[place];
  const limit = quantile(confidence, seen.degrees) ** 2;
  const se = known.se[place];
  const accepted = (steps) =>
    profile(seen, [seen.toOwn[place]], [estimate + se * steps - seen.base[place]], known.byTable, limit) <= limit;
  if (accepted(-FAR) || accepted(FAR)) return { lower: -Infinity, upper: Infinity, method: "fieller" };
  const end = (sign) => {
    const grid = [0, ...STEPS];
    let last = STEPS.length - 1; // the farthest step within
    while (last > 0 && !accepted(sign * STEPS[last - 1])) last--;
    let [low, high] = [grid[last], grid[last + 1]];
    for (let k = 0; k < HALVINGS; k++) {
      const middle = (low + high) / 2;
      if (accepted(sign * middle)) low = middle;
      else high = middle;
    }
    return estimate + se * sign * high;
  };
  return { lower: end(-1), upper: end(1), method: "fieller" };
}

export const fieller = (seen, known, confidence) =>
  Array.from(seen.gain, (_, place) => fiellerOne(seen, known, confidence, place));

// Which coefficients owe most of their variance to directions whose gain may well be zero; all, where that is so for more than half.
export function weaklyIdentified(seen, below = WEAK) {
  const found = weakCombinations(seen, seen.toOwn, below);
  return found.filter(Boolean).length > found.length / 2 ? found.map(() => true) : found;
}

// The same for rows in the channel's own basis, each by itself.
export function weakCombinations(seen, rows, below = WEAK) {
  const weak = Array.from(seen.gain, (g, i) => g < below * seen.gainSd[i]);
  if (!weak.includes(true)) return rows.map(() => false);
  const noise = noiseVariance(seen, seen.estimate);
  return rows.map((row) => {
    let [hidden, whole] = [0, 0];
    row.forEach((value, j) => {
      const share = (value ** 2 * noise[j]) / seen.debiased[j] ** 2;
      whole += share;
      if (weak[j]) hidden += share;
    });
    return hidden > whole / 2;
  });
}

// Wald's intervals, and Fieller's where a coefficient is weakly identified, or doubtfully and Fieller's is bounded.
export function automatic(seen, known, confidence) {
  const weak = weaklyIdentified(seen);
  const doubtful = weaklyIdentified(seen, DOUBTFUL);
  return wald(seen, known, confidence).map((first, i) => {
    if (!weak[i] && !doubtful[i]) return first;
    const second = fiellerOne(seen, known, confidence, i);
    return weak[i] || (Number.isFinite(second.lower) && Number.isFinite(second.upper)) ? second : first;
  });
}
