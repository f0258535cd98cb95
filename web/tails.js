// What rows beyond the clip hold, as far as the outer matrices of the last round show it, and how far that moves a regression. As
// dpgram.evidence.tails, which has the mathematics; names are the same.

import { apply, dot, transpose } from "./linalg.js";

const AGREEMENT = Array.from({ length: 12 }, (_, k) => 0.005 ** (1 - k / 11)); // how far long rows may agree on a direction
const EXPECTED = AGREEMENT.map((rho) => rho ** -0.2); // prior weights of them
const RISING = AGREEMENT.map((rho) => rho ** -2); // the same of those that are as large as that of the scale before
const CAREFUL = AGREEMENT.map((rho) => 1 / rho); // further weights, for estimates
const FAINTEST = 1e-300; // of the largest likelihood: with many coefficients the others are no floats any more
const NEAR = 1.5; // standard deviations of the noise: how far from what was seen a mean square along the residual may be
const OPEN = [0.05, 0.1, 0.2, 0.4, 0.8]; // values of rho that intervals count with, one for all scales
const START = 0.4; // of a scale: about the squared length of its rows, which are between a fifth and four fifths of it
const BENT = 6; // how much more of what long rows do is expected along the fit than along any other direction
const WHOLE = 0.97; // of a row's square: at most so much lies in one direction
const ROUGH = 1; // relative standard deviation of what a power law says
const SURELY = 5; // standard deviations of a sum of squares that is noise alone
const [STEPS, STEADY] = [6, 0.05]; // of what is believed of outer matrices: at most so many; enough when a step changes less of the noise
const sum = (values) => values.reduce((total, value) => total + value, 0);

// A channel with as much of the outer matrices as is believed, and what the rest leaves open: the variance of what is observed, in the mean
// of all directions, of each coefficient how much more or less that is, and by how much more or less than others the sum of squared errors may
// lack of long rows. `tails` and `inner`, the matrix that `seen` is the channel of, are
// in the basis of the regression; channelOf(block, law) is the channel of any other. `directions` are the regressors less what the others
// explain of them; fitOf(residual) is the direction of what they say of the label.
export function withTails(tails, inner, seen, channelOf, directions, fitOf) {
  const shape = inner.map((row) => row.map((value) => value / tails.size));
  let [believed, residual] = [null, null];
  for (let k = 0; k < STEPS; k++) {
    residual = residualOf(seen);
    const before = believed ?? tails.scales.map(() => 0);
    believed = judged(tails, shape, residual, believed);
    const { block, law } = joined(tails, shape, believed);
    seen = channelOf(block, law);
    if (Math.max(...tails.scales.map((scale, i) => Math.abs(believed[i] - before[i]) * scale)) * tails.sd <= STEADY * law.sd_off_diagonal) break;
  }
  return { ...seen, ...leftOpen(tails, shape, residual, believed, directions, fitOf(residualOf(seen))) };
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

const rowsOf = (trace, scale, scales) => Math.max(trace * (scale === scales[0] ? 9 : 3.5), 1);
const loglikelihood = (prior, sd, apart) => {
  const total = prior + sd ** 2;
  return -0.5 * (apart.length * Math.log(total) + dot(apart, apart) / total);
};

// The share to believe of each outer matrix. Shares that were `believed` before are gone away from by half.
function judged(tails, shape, residual, believed) {
  const { outer, scales, sizes, sd, dim } = tails;
  const length = dot(residual, residual);
  const seen = outer.map((matrix, k) => {
    const along = dot(residual, apply(matrix, residual)) / length;
    const near = Math.min(Math.max(sizes[k], along - NEAR * Math.SQRT2 * sd), along + NEAR * Math.SQRT2 * sd);
    const own = Math.min(Math.max(near, 0), dim * sizes[k]); // no direction has more than the trace
    const rows = rowsOf(dim * sizes[k], scales[k], scales);
    const prior = AGREEMENT.map((rho) => Math.min(rho ** 2 + 1 / rows, 1) * sizes[k] * own);
    const apart = apartFrom(tails, k, shape, residual);
    const likely = prior.map((value) => loglikelihood(value, sd, apart));
    const highest = Math.max(...likely);
    return { prior, chance: likely.map((value) => Math.max(Math.exp(value - highest), FAINTEST)) };
  });
  return rising(seen.map(({ chance }) => chance)).map((chance, k) => {
    const { prior } = seen[k];
    const share = average(prior.map((value) => value / (value + sd ** 2)), chance.map((value, i) => value * CAREFUL[i]));
    return believed === null ? share : (share + believed[k]) / 2;
  });
}

// What is left open by what is not `believed`.
function leftOpen(tails, shape, residual, believed, directions, fit) {
  const { outer, scales, usual, sd, dim } = tails;
  const length = dot(residual, residual);
  const noise = 2 * sd ** 2;
  const weights = scales.map((scale, k) => scale * (1 - believed[k]));
  const along = (direction) => {
    const vector = Float64Array.from(residual, (_, i) => direction[i] ?? 0);
    const expected = expectedAlong(tails, vector);
    return outer.map((matrix, k) => withSeen(expected[k], dot(vector, apply(matrix, vector)), noise));
  };
  const unit = residual.map((value) => value / Math.sqrt(length));
  const own = along(unit);
  const agreed = scales.map((scale, k) => OPEN.map((rho) => Math.min(rho ** 2 + 1 / rowsOf(dim * usual[k], scale, scales), 1)));
  const apart = scales.map((_, k) => apartFrom(tails, k, shape, residual));
  const likely = OPEN.map((_, i) => sum(scales.map((_, k) => loglikelihood(agreed[k][i] * usual[k] * own[k], sd, apart[k]))));
  const highest = Math.max(...likely);
  const chance = likely.map((value, i) => Math.exp(value - highest) / OPEN[i]);
  const variance = (sizes) => {
    const square = (_, i) => sum(scales.map((_, k) => weights[k] * Math.sqrt(agreed[k][i] * own[k] * sizes[k]))) ** 2; // all scales agree
    return length * average(OPEN.map(square), chance);
  };
  const byClipping = variance(usual);
  const bent = (each) => (1 + BENT * dot(fit, each) ** 2) / (1 + (BENT * dot(fit, fit)) / (residual.length - 1));
  const leaning = directions.map((each) => (byClipping > 0 ? Math.sqrt((variance(along(each)) * bent(each)) / byClipping) : 1));
  const inside = dot(unit, apply(shape, unit));
  const openSquares = length * Math.abs(sum(scales.map((_, k) => weights[k] * (own[k] - usual[k] * inside))));
  return { byClipping, leaning, openSquares };
}

// Mean squares of the outer matrices along a unit vector by a power law, shared out as the declared bounds let rows reach.
function expectedAlong({ scales, usual, through, reaches, dim }, direction) {
  const cells = apply(transpose(through), direction);
  return scales.map((scale, k) => usual[k] * Math.min(Math.min(dot(cells, cells), START * scale) / reaches[k], WHOLE * dim));
}

function withSeen(size, seen, noise) {
  const spread = (ROUGH * size) ** 2;
  return Math.max(size + (spread / Math.max(spread + noise, Number.MIN_VALUE)) * (seen - size), 0);
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
