// Residual variance and R^2 with intervals that count the privacy noise. As dpgram.inference.goodness.

import { additiveForm, inOwnUnits, weighedRows } from "./channel.js";
import { weaklyIdentified } from "./intervals.js";
import { addToDiagonal, apply, dot, solve } from "./linalg.js";
import { chiSquareAbove, chiSquareBelow, quantile } from "./special.js";

export function goodness(release, plan, seen, known, confidence) {
  const rows = Math.max(seen.rows - seen.gain.length, 1);
  const reach = quantile(confidence, seen.degrees);
  const products = productsOf(release);
  const coefficients = inOwnUnits(seen, seen.estimate);
  const scaled = solve(plan.toOwn, coefficients.map((value, i) => value - plan.offset[i]));
  const fitted = apply(plan.regressors, scaled);
  const u = plan.label.map((value, i) => value - fitted[i]);
  const left = Math.max(known.variance * rows * seen.labelScale ** 2 + weighing(release, u), 0);
  const about = aboutItsMean(products, plan);
  const whole = products(about, about);
  const around = seen.shift * dot(u, u);
  let noise = quadraticCovariance(release, u, u);
  let [below, above] = [reach * Math.sqrt(noise), reach * Math.sqrt(noise)];
  if (seen.degrees !== Infinity) { // a draw multiplies what is left over, the shift within it, by chi-square over its degrees
    noise = (2 * (left + around) ** 2) / seen.degrees;
    const [low, high] = chiSquareEnds(seen.degrees, confidence);
    [below, above] = [(left + around) * (1 - 1 / high), (left + around) * (1 / low - 1)];
  }
  const sampling = reach * Math.sqrt(2 / rows) * left;
  const { rows: count, rowsSd: countSd } = weighedRows(release);
  if (countSd > 0) { // the number of rows was read from the matrix too
    const [low, high] = chiSquareEnds(Math.max(2 * (count / countSd) ** 2, 1), confidence);
    [below, above] = [Math.hypot(below, left * (1 - low)), Math.hypot(above, left * (high - 1))];
  }
  const unit = plan.labelUnit ** 2 / Math.max(count - seen.gain.length, 1);
  const weak = weaklyIdentified(seen);
  const mayExplainAll = weak.includes(true);
  const lowest = mayExplainAll ? 0 : Math.max(left - Math.hypot(below, sampling), 0);
  const hidden = release.noise.shape === "noisy-inverse" && !weak.includes(false);
  const highest = hidden ? Infinity : left + Math.hypot(above, sampling);
  const found = { residualVariance: left * unit, residualVarianceInterval: [lowest * unit, highest * unit] };
  const spread = quadraticCovariance(release, about, about);
  if (whole <= reach * Math.sqrt(spread)) return { ...found, rSquared: null, rSquaredInterval: [0, 1] };
  const ratio = Math.min(left / whole, 1);
  const change =
    (noise - 2 * ratio * quadraticCovariance(release, u, about) + ratio ** 2 * spread) / whole ** 2
    + (4 * (1 - ratio) * ratio ** 2) / seen.rows;
  const wide = reach * Math.sqrt(Math.max(change, 0));
  const most = mayExplainAll ? 1 : Math.min(1 - ratio + wide, 1);
  return { ...found, rSquared: 1 - ratio, rSquaredInterval: [Math.max(1 - ratio - wide, 0), most] };
}

// What chi-square over its degrees of freedom lies between.
function chiSquareEnds(degrees, confidence) {
  const tail = (1 - confidence) / 2;
  return [chiSquareBelow(degrees, tail), chiSquareAbove(degrees, tail)];
}

// What the sum of squares of u is less, or more, where rows count with the weights that shrinking them in whitened coordinates left.
function weighing(release, u) {
  if (!release.rounds) return 0;
  const { gram, turn } = additiveForm(release);
  const there = apply(turn, u);
  return dot(there, apply(release.rounds.weighedGram, there)) - dot(there, apply(gram, there));
}

// The sum of products of two combinations of columns, by the released matrix less its shift.
function productsOf(release) {
  if (release.rounds) { // the released matrix may have lost digits
    const { turn } = release.rounds;
    return (a, b) => dot(apply(turn, a), apply(release.rounds.weighedGram, apply(turn, b)));
  }
  const own = addToDiagonal(release.gram, -release.noise.shift);
  return (a, b) => dot(a, apply(own, b));
}

// The label less its mean, as a combination of columns; the label itself where the model has no intercept.
function aboutItsMean(products, plan) {
  if (!plan.constant) return plan.label;
  const ones = plan.regressors.map((row) => row[0]);
  const mean = products(ones, plan.label) / Math.max(products(ones, ones), 1);
  return plan.label.map((value, i) => value - plan.regressors[i][0] * mean);
}

// Covariance of a'Ea and b'Eb, E the privacy noise on the whole matrix; to first order where it multiplies.
export function quadraticCovariance(release, a, b) {
  const { gram, rounds } = release;
  const noise = rounds ? rounds.noise : release.noise;
  if (noise.degrees_of_freedom !== undefined) return (2 * dot(a, apply(gram, b)) ** 2) / noise.degrees_of_freedom;
  let [off, on] = [noise.sd_off_diagonal, noise.sd_diagonal];
  if (noise.shape === "noisy-inverse") {
    [a, b] = [apply(gram, a), apply(gram, b)];
    [off, on] = [noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse];
  }
  if (rounds) [a, b] = [apply(rounds.turn, a), apply(rounds.turn, b)];
  let fourth = 0;
  for (let i = 0; i < a.length; i++) fourth += a[i] ** 2 * b[i] ** 2;
  return 2 * off ** 2 * dot(a, b) ** 2 + (on ** 2 - 2 * off ** 2) * fourth;
}
