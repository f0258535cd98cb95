// Residual variance and R^2 with intervals that count the privacy noise. As dpgram.inference.goodness.

import { channelOfShrunk, inOwnUnits } from "./channel.js";
import { errorVariance, rowsLeft, uncertainty, weaklyIdentified } from "./intervals.js";
import { apply, dot, solve } from "./linalg.js";
import { noiseLaw } from "./noise.js";
import { chiSquareAbove, chiSquareBelow, quantile } from "./special.js";

// Of rows as they were shrunk, where they were.
export function goodness(release, plan, confidence) {
  const seen = channelOfShrunk(release, plan);
  const rows = rowsLeft(seen, seen.rows);
  const reach = quantile(confidence, seen.degrees);
  const { evidence } = release;
  const products = (a, b) => product(evidence.weighed, a, b);
  const coefficients = inOwnUnits(seen, seen.observed.map((value, i) => value / seen.debiased[i])); // shrunk ones would have seen less noise
  const scaled = solve(plan.toOwn, coefficients.map((value, i) => value - plan.offset[i]));
  const fitted = apply(plan.regressors, scaled);
  const u = plan.label.map((value, i) => value - fitted[i]);
  const left = Math.max(errorVariance(seen) * rows * seen.labelScale ** 2 + weighing(evidence, u), 0);
  const about = aboutItsMean(products, plan);
  const whole = products(about, about);
  const around = seen.shift * dot(u, u);
  let noise = quadraticCovariance(evidence, u, u);
  let [below, above] = [reach * Math.sqrt(noise), reach * Math.sqrt(noise)];
  if (seen.degrees !== Infinity) { // a draw multiplies what is left over, the shift within it, by chi-square over its degrees
    noise = (2 * (left + around) ** 2) / seen.degrees;
    const [low, high] = chiSquareEnds(seen.degrees, confidence);
    [below, above] = [(left + around) * (1 - 1 / high), (left + around) * (1 / low - 1)];
  }
  const sampling = reach * Math.sqrt((2 * seen.designEffect) / rows) * left;
  const { rows: count, rowsSd: countSd } = evidence.weighedRows;
  if (countSd > 0) { // the number of rows was read from the matrix too
    const [low, high] = chiSquareEnds(Math.max(2 * (count / countSd) ** 2, 1), confidence);
    [below, above] = [Math.hypot(below, left * (1 - low)), Math.hypot(above, left * (high - 1))];
  }
  const unit = plan.labelUnit ** 2 / rowsLeft(seen, count);
  const weak = weaklyIdentified(seen, uncertainty(seen), seen.toOwn);
  const mayExplainAll = weak.includes(true);
  const lowest = mayExplainAll ? 0 : Math.max(left - Math.hypot(below, sampling), 0);
  const hidden = evidence.hidesSquares && weak.filter(Boolean).length > weak.length / 2;
  const highest = hidden ? Infinity : left + Math.hypot(above, sampling);
  const found = { residualVariance: left * unit, residualVarianceInterval: [lowest * unit, highest * unit] };
  const spread = quadraticCovariance(evidence, about, about);
  if (whole <= reach * Math.sqrt(spread)) return { ...found, rSquared: null, rSquaredInterval: [0, 1] };
  const ratio = Math.min(left / whole, 1);
  const change =
    (noise - 2 * ratio * quadraticCovariance(evidence, u, about) + ratio ** 2 * spread) / whole ** 2
    + (4 * (1 - ratio) * ratio ** 2 * seen.designEffect) / seen.rows;
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
const weighing = ({ weighed, alone }, u) => (weighed.turn === null ? 0 : product(weighed, u, u) - product(alone, u, u));

// The sum of products of two combinations of columns.
function product({ matrix, turn }, a, b) {
  const there = (columns) => (turn ? apply(turn, columns) : columns);
  return dot(there(a), apply(matrix, there(b)));
}

// The label less its mean, as a combination of columns; the label itself where the model has no intercept.
function aboutItsMean(products, plan) {
  if (!plan.constant) return plan.label;
  const ones = plan.regressors.map((row) => row[0]);
  const mean = products(ones, plan.label) / Math.max(products(ones, ones), 1);
  return plan.label.map((value, i) => value - plan.regressors[i][0] * mean);
}

// Covariance of a'Ea and b'Eb, E the privacy noise on the sums of products; to first order where it multiplies.
function quadraticCovariance(evidence, a, b) {
  const { products, excess, forms: [first, second] } = noiseLaw(evidence, [a, b]);
  let fourth = 0;
  for (let i = 0; i < first.length; i++) fourth += first[i] ** 2 * second[i] ** 2;
  return 2 * products[0][1] ** 2 + excess * fourth;
}
