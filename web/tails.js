// What rows beyond the clip hold, as far as the outer matrices of the last round show it, and how far that moves a regression. As
// dpgram.evidence.tails, which has the mathematics; names are the same.

import { apply, dot } from "./linalg.js";

const AGREEMENT = Array.from({ length: 12 }, (_, k) => 0.005 ** (1 - k / 11)); // how far long rows may agree on a direction
const EXPECTED = AGREEMENT.map((rho) => rho ** -0.2); // prior weights of them
const RISING = AGREEMENT.map((rho) => rho ** -2); // the same of those that are as large as that of the scale before
const CAREFUL = AGREEMENT.map((rho) => 1 / rho); // further weights, for estimates
const FAINTEST = 1e-300; // of the largest likelihood: with many coefficients the others are no floats any more
const NEAR = 1.5; // standard deviations of the noise: how far from what was seen a mean square along the residual may be
const SURELY = 5; // standard deviations of a sum of squares that is noise alone
const [STEPS, STEADY] = [6, 0.05]; // of what is believed of outer matrices: at most so many; enough when a step changes less of the noise
const sum = (values) => values.reduce((total, value) => total + value, 0);

// A channel with as much of the outer matrices as is believed, and the variance that the rest leaves open. `tails` and `inner`, the matrix
// that `seen` is the channel of, are in the basis of the regression; channelOf(block, law, byClipping) is the channel of any other.
export function withTails(tails, inner, seen, channelOf) {
  const shape = inner.map((row) => row.map((value) => value / tails.size));
  let believed = null;
  for (let k = 0; k < STEPS; k++) {
    const residual = residualOf(seen);
    const before = believed ?? tails.scales.map(() => 0);
    const { shares, left } = judged(tails, shape, residual, believed);
    believed = shares;
    const { block, law } = joined(tails, shape, believed);
    seen = channelOf(block, law, left);
    if (Math.max(...tails.scales.map((scale, i) => Math.abs(believed[i] - before[i]) * scale)) * tails.sd <= STEADY * law.sd_off_diagonal) break;
  }
  return seen;
}

// The view of all rounds together, with what outer matrices show beyond doubt at scales whose rows surely follow another line than `seen`,
// the channel of the last round. `tails` and `inner` are in its basis.
export function togetherWith(together, tails, inner, seen) {
  const shape = inner.map((row) => row.map((value) => value / tails.size));
  const residual = residualOf(seen);
  const p = residual.length - 1;
  const counted = tails.clear.filter((matrix, k) => {
    const noise = tails.sd ** 2 + (tails.sizes[k] * tails.shapeSd) ** 2;
    const apart = apartFrom(tails, k, shape, residual);
    return matrix !== null && dot(apart, apart) > noise * (p + SURELY * Math.sqrt(2 * p));
  });
  const matrix = together.matrix.map((row, i) => row.map((value, j) => value + sum(counted.map((each) => each[i][j]))));
  return { ...together, matrix };
}

const residualOf = (seen) => Float64Array.of(...apply(seen.axes, seen.estimate).map((value) => -value), 1);

// Q'(M_k - c_k S) v, where v is the residual, of length one.
function apartFrom({ outer, sizes }, k, shape, residual) {
  const [there, within, length] = [apply(outer[k], residual), apply(shape, residual), Math.sqrt(dot(residual, residual))];
  return there.map((value, i) => (value - sizes[k] * within[i]) / length).slice(0, -1);
}

// The first matrix with the outer ones, as far as they are believed, and the law of the noise in that.
function joined({ first, outer, scales, sizes, sd, shapeSd }, shape, believed) {
  const weights = scales.map((scale, k) => scale * believed[k]);
  const guessed = sum(scales.map((scale, k) => scale * (1 - believed[k]) * sizes[k]));
  const entry = (value, i, j) => value + guessed * shape[i][j] + sum(outer.map((matrix, k) => weights[k] * matrix[i][j]));
  const block = first.map((row, i) => row.map((value, j) => entry(value, i, j)));
  const whole = Math.hypot(sd + guessed * shapeSd, ...weights.map((weight) => weight * sd));
  return { block, law: { name: "symmetric-gaussian", sd_off_diagonal: whole, sd_diagonal: Math.SQRT2 * whole, shift: 0 } };
}

// The share to believe of each outer matrix, and the variance that the rest leaves open in what a regression observes. Shares that were
// `believed` before are gone away from by half.
function judged({ outer, scales, sizes, sd, dim }, shape, residual, believed) {
  const length = dot(residual, residual);
  const within = apply(shape, residual);
  const p = residual.length - 1;
  const seen = outer.map((matrix, k) => {
    const there = apply(matrix, residual);
    const apart = there.map((value, i) => value - sizes[k] * within[i]).slice(0, p);
    const along = dot(residual, there) / length;
    const near = Math.min(Math.max(sizes[k], along - NEAR * Math.SQRT2 * sd), along + NEAR * Math.SQRT2 * sd);
    const own = Math.min(Math.max(near, 0), dim * sizes[k]); // no direction has more than the trace
    const rows = Math.max(dim * sizes[k] * (scales[k] === scales[0] ? 9 : 3.5), 1);
    const prior = AGREEMENT.map((rho) => Math.min(rho ** 2 + 1 / rows, 1) * sizes[k] * own);
    const total = prior.map((value) => value + sd ** 2);
    const likely = total.map((value) => -0.5 * (p * Math.log(value) + dot(apart, apart) / length / value));
    const highest = Math.max(...likely);
    return { prior, total, chance: likely.map((value) => Math.max(Math.exp(value - highest), FAINTEST)) };
  });
  const parts = rising(seen.map(({ chance }) => chance)).map((chance, k) => {
    const { prior, total } = seen[k];
    const share = average(prior.map((value, i) => value / total[i]), chance.map((value, i) => value * CAREFUL[i]));
    const kept = believed === null ? share : (share + believed[k]) / 2;
    return { share: kept, left: (scales[k] * (1 - kept)) ** 2 * average(prior, chance) };
  });
  return { shares: parts.map(({ share }) => share), left: length * sum(parts.map(({ left }) => left)) };
}

// The posterior of how far rows agree at each scale: before anything is seen, it is at least that of the scale before.
function rising(likely) {
  const above = RISING.map((_, i) => sum(RISING.slice(i)));
  let prior = EXPECTED;
  return likely.map((each) => {
    const product = each.map((value, i) => value * prior[i]);
    const whole = sum(product);
    const posterior = product.map((value) => value / whole);
    let total = 0;
    prior = RISING.map((weight, i) => weight * (total += posterior[i] / above[i]));
    return posterior;
  });
}

const average = (values, weights) => dot(values, weights) / sum(weights);
