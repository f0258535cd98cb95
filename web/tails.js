// What rows beyond the clip hold, as far as the outer matrices of the last round show it, and how far that moves a regression. As
// dpgram.evidence.tails, which has the mathematics; names are the same.

import { apply, dot } from "./linalg.js";

const AGREEMENT = Array.from({ length: 12 }, (_, k) => 0.005 ** (1 - k / 11)); // how far long rows may agree on a direction
const CAREFUL = AGREEMENT.map((rho) => 1 / rho); // prior weights of them: for estimates; those for intervals are all one
const [STEPS, STEADY] = [6, 0.05]; // of what is believed of outer matrices: at most so many; enough when a step changes less of the noise
const sum = (values) => values.reduce((total, value) => total + value, 0);

// A channel with as much of the outer matrices as is believed, and the variance that the rest leaves open. `inner` and `outer` are matrices in
// the basis of the regression, `first` is its channel by the former alone, and channelOf(block, law, byClipping) that of any other.
export function withTails(tails, inner, outer, first, channelOf) {
  let [seen, believed] = [first, null];
  for (let k = 0; k < STEPS; k++) {
    const residual = Float64Array.of(...apply(seen.axes, seen.estimate).map((value) => -value), 1);
    const before = believed ?? tails.scales.map(() => 0);
    const { shares, left } = judged(tails, inner, outer, residual, believed);
    believed = shares;
    const { block, law } = joined(tails, inner, outer, believed);
    seen = channelOf(block, law, left);
    if (Math.max(...tails.scales.map((scale, i) => Math.abs(believed[i] - before[i]) * scale)) * tails.sd <= STEADY * law.sd_off_diagonal) break;
  }
  return seen;
}

// The first matrix with the outer ones by the shares `believed`, and the law of the noise in that.
function joined({ scales, sizes, mean, sd, innerSd }, inner, outer, believed) {
  const weights = scales.map((scale, k) => scale * believed[k]);
  const own = Math.max(1 - dot(weights, sizes) / mean, 0);
  const block = inner.map((row, i) => row.map((value, j) => own * value + sum(outer.map((matrix, k) => weights[k] * matrix[i][j]))));
  const whole = Math.hypot(own * innerSd, ...weights.map((weight) => weight * sd));
  return { block, law: { name: "symmetric-gaussian", sd_off_diagonal: whole, sd_diagonal: Math.SQRT2 * whole, shift: 0 } };
}

// The share to believe of each outer matrix, and the variance that the rest leaves open in what a regression observes. Shares that were
// `believed` before are gone away from by half.
function judged({ scales, sizes, mean, sd }, inner, outer, residual, believed) {
  const size = dot(residual, residual);
  const within = apply(inner, residual);
  const p = residual.length - 1;
  const parts = outer.map((matrix, k) => {
    const there = apply(matrix, residual);
    const apart = there.map((value, i) => value - (sizes[k] * within[i]) / mean).slice(0, p);
    const along = dot(residual, there) / size;
    const own = Math.min(Math.max(sizes[k], along - Math.SQRT2 * sd), along + Math.SQRT2 * sd);
    const prior = AGREEMENT.map((rho) => rho ** 2 * sizes[k] * Math.max(own, 0));
    const total = prior.map((value) => value + sd ** 2);
    const likely = total.map((value) => -0.5 * (p * Math.log(value) + dot(apart, apart) / size / value));
    const highest = Math.max(...likely);
    const chance = likely.map((value) => Math.exp(value - highest));
    const seen = average(prior.map((value, i) => value / total[i]), chance.map((value, i) => value * CAREFUL[i]));
    const share = believed === null ? seen : (seen + believed[k]) / 2;
    return { share, left: (scales[k] * (1 - share)) ** 2 * average(prior, chance) };
  });
  return { shares: parts.map(({ share }) => share), left: size * sum(parts.map(({ left }) => left)) };
}

const average = (values, weights) => dot(values, weights) / sum(weights);
