// What the evidence says about the coefficients of one regression: a linear channel with known noise. As dpgram.regression.channel and
// dpgram.evidence.law, which has the mathematics; names are the same.

import { addToDiagonal, apply, dot, identity, inverse, multiply, norm, qr, transpose } from "./linalg.js";
import { eigenSymmetric } from "./eigen.js";
import { debiasedGain, positiveMoments, symmetricShrinkage, wishartShrinkage } from "./shrinkage.js";
import { INTERCEPT, ModelError } from "./design.js";
import { togetherWith, withTails } from "./tails.js";

const TINY = 1e-300;
const WEAK = 1.96; // a gain below so many sds of its noise may be zero
const EFFECT = 2; // of a 0/1 column, in standard deviations of the target: one standard deviation of what is expected
const TELLING = 1; // the same of one standard deviation of any other column, which then explains all of the target
const UNKNOWN_GAIN = 1e-3; // standard deviations of its noise
const sum = (values) => values.reduce((total, value) => total + value, 0);
const isDraw = (law) => law.degrees_of_freedom !== undefined;

// By the last of several rounds, for inference, or by all of them together, for estimates. Of rows beyond the last round's clip the former
// counts what outer matrices show, the latter what they show beyond doubt.
export function makeChannel(release, plan, together = false) {
  const { evidence } = release;
  const last = channelFrom(release, plan, evidence.alone);
  if (evidence.tails === null) return together ? channelFrom(release, plan, evidence.together).seen : last.seen;
  const inner = { first: last.inBasis(evidence.tails.first), outer: evidence.tails.outer.map(last.inBasis) };
  const tails = { ...evidence.tails, ...inner, through: multiply(transpose(last.basis), evidence.tails.through) };
  if (!together) return withTails(tails, last.inner, last.seen, last.channelOf, last.back.map(unit), last.fitOf);
  return channelFrom(release, plan, togetherWith(evidence.together, tails, last.inner, last.seen)).seen;
}

// That of the last round's first matrix: of rows as they were shrunk.
export const channelOfShrunk = (release, plan) => channelFrom(release, plan, release.evidence.alone).seen;

// The channel of a view, and what others are made of in its basis.
function channelFrom(release, plan, { matrix: gram, law, turn: own }) {
  const { evidence } = release;
  const turn = own ?? identity(gram.length);
  const frame = orthonormal(plan, turn);
  const inBasis = (matrix) => multiply(transpose(frame.basis), multiply(matrix, frame.basis));
  const ones = release.intercept ? apply(transpose(frame.basis), unit(turn.map((row) => row[0]))) : null;
  const back = multiply(plan.toOwn, inverse(frame.triangle));
  const channelOf = (block, noise) => channelBy(evidence, plan, { ...frame, ones, back }, block, noise);
  const inner = inBasis(gram);
  const fitOf = (residual) => fitted(frame, plan.names[0] === INTERCEPT ? ones : null, residual);
  return { seen: channelOf(inner, law), inner, inBasis, channelOf, basis: frame.basis, back, fitOf };
}

// The direction of what the regressors say of the label, less its mean where the regression has one; zero where that is nothing.
function fitted({ along, labelScale }, ones, residual) {
  const said = along.map((value, i) => value - labelScale * residual[i]);
  const inside = ones === null ? said.map(() => 0) : ones.slice(0, said.length);
  const mean = dot(inside, said) / Math.max(dot(inside, inside), TINY);
  const left = said.map((value, i) => value - inside[i] * mean);
  const length = Math.max(norm(left), TINY);
  return left.map((value) => value / length);
}

// By a matrix in the basis. Rows beyond the clip leave the variance `byClipping` in what was observed, in the mean of all directions, and
// `leaning` times its root of each coefficient: none, where nobody says more.
function channelBy(evidence, plan, { ones, back, along, labelScale, triangle }, block, noise) {
  const p = plan.names.length;
  const { values, vectors: axes } = eigenSymmetric(block.slice(0, p).map((row) => row.slice(0, p)));
  const side = Float64Array.from({ length: p }, (_, i) => block[i][p]);
  const cross = apply(transpose(axes), side);
  const square = block[p][p];
  const seen = {
    "symmetric-gaussian": () => additive(values, cross, noise),
    "wishart-sample": () => wishart(values, cross, square, noise),
    "inverse-wishart-sample": () => inverseWishart(values, cross, square, noise, evidence.alone.matrix.length),
  }[noise.name]();
  seen.measured = seen.gain;
  seen.debiased = debiasedGain(seen.gain, seen.weight, seen.spread);
  if (evidence.hidden) {
    seen.gain = seen.weight.map((w) => UNKNOWN_GAIN * Math.sqrt(2 * seen.spread) * w);
  }
  const drawn = isDraw(noise);
  const shift = noise.shift;
  seen.gainSd = seen.weight.map((w) => Math.sqrt(2 * seen.spread) * w);
  seen.hidden = gainBelow(seen, WEAK);
  const rows = evidence.counted.rows;
  Object.assign(seen, divided(seen, () => plausible({ values, axes, along, labelScale, triangle, ones, block, noise, rows, indicators: plan.indicators })));
  return {
    ...seen,
    axes,
    byClipping: 0,
    openSquares: 0,
    leaning: plan.names.map(() => 1),
    estimate: seen.observed.map((value, i) => value / seen.divisor[i]),
    perRow: seen.debiased.map((x, i) => x * (drawn ? seen.weight[i] : 1)),
    explains: seen.debiased.map((x) => x * (drawn ? shift : 1)),
    toOwn: multiply(back, axes).map((row) => row.map((value) => labelScale * value)),
    base: apply(back, along).map((value, i) => value + plan.offset[i]),
    scale: expectedSize(block, noise, ones),
    rows,
    designEffect: evidence.designEffect,
    unexplained: (seen.conditional ?? square) - shift,
    shift,
    labelScale,
  };
}

// Directions whose gain is less than `limit` sds of its noise, also once it is known that noise spreads a spectrum.
export const gainBelow = (seen, limit) =>
  Array.from(seen.gain, (g, i) => Math.min(g, seen.expected[i]) < limit * seen.gainSd[i]);

// By what is observed divided for the estimate, and the variance that is left of coefficients in hidden directions.
function divided(seen, plausibleOf) {
  const { weight, spread, hidden } = seen;
  if (!hidden.includes(true)) return { divisor: seen.debiased, left: weight.map(() => 0) };
  const size = plausibleOf();
  const { first: mean, second } = positiveMoments(seen.expected, seen.gainSd);
  const total = size.map((tau, i) => tau * (second[i] + seen.others[i]) + seen.label * weight[i]);
  const shrunk = total.map((value, i) => value / (size[i] * mean[i]));
  const pull = sum(shrunk.map((value, i) => (hidden[i] ? weight[i] / value : 0)));
  const clear = [...hidden.keys()].filter((i) => !hidden[i]);
  const gains = debiasedGain(clear.map((i) => seen.measured[i] + spread * weight[i] * pull), clear.map((i) => weight[i]), spread);
  const divisor = Float64Array.from(shrunk);
  clear.forEach((i, k) => (divisor[i] = gains[k]));
  return { divisor, left: size.map((tau, i) => (hidden[i] ? tau * (1 - (tau * mean[i] ** 2) / total[i]) : 0)) };
}

// The mean square that is expected of b in each direction.
//
// That of a 0/1 column is a few standard deviations of the target. What a number has for itself, beside the other columns, explains no more
// than all of the target. Where noise is all there is of that, because its bounds are wide or because it is nearly a combination of other
// columns, its standard deviation is that of the noise: so its coefficient may be large.
function plausible({ values, axes, along, labelScale, triangle, ones, block, noise, rows, indicators }) {
  const turned = transpose(axes);
  const labelSd = sdOf(Float64Array.of(...along, labelScale), { ones, block, noise, rows });
  const ownSd = ownSds({ values, axes, triangle, noise, rows });
  const each = indicators.map((is, j) => ((is ? EFFECT : TELLING / ownSd[j]) * labelSd) ** 2);
  const middle = apply(turned, along); // where released coefficients are zero
  const spanned = multiply(turned, triangle).map((row) => row.map((value) => value ** 2));
  return Array.from(spanned, (row, i) => (row.reduce((total, value, j) => total + value * each[j], 0) + middle[i] ** 2) / labelScale ** 2);
}

// Standard deviations of what each column has beside the others, in scaled units, as far as they stand above the noise.
function ownSds({ values, axes, triangle, noise, rows }) {
  const seen = values.map((value) => Math.max(value - noise.shift, lawSd(noise), TINY));
  const back = multiply(inverse(triangle), axes);
  return back.map((row) => 1 / Math.sqrt(sum(Array.from(row, (value, i) => value ** 2 / seen[i])) * Math.max(rows, 1)));
}

// The standard deviation of a combination of the basis, in scaled units, as far as it stands above the noise.
function sdOf(column, { ones, block, noise, rows }) {
  const sd = lawSd(noise);
  const own = addToDiagonal(block, -noise.shift);
  const size = ones === null ? 0 : dot(ones, apply(own, ones));
  const sums = apply(own, column);
  let squares = dot(column, sums);
  if (size > sd) squares -= dot(ones, sums) ** 2 / size;
  return Math.sqrt(Math.max(squares, sd * dot(column, column), TINY) / Math.max(rows, 1));
}

// Diagonal of the privacy noise's covariance at b, without the rank-one part.
export function noiseVariance(seen, b) {
  let size = 0;
  for (let i = 0; i < b.length; i++) size += seen.weight[i] * b[i] * b[i];
  const found = new Float64Array(b.length);
  for (let i = 0; i < b.length; i++) found[i] = seen.weight[i] * (seen.label + seen.spread * size);
  return found;
}

// The sum of squared errors of the unit label, unbiased, so that it may be negative.
export const errorSquares = (seen) =>
  seen.unexplained
  - sum(seen.explains.map((e, i) => e * ((seen.observed[i] / seen.debiased[i]) ** 2 - (seen.label * seen.weight[i]) / seen.debiased[i] ** 2)));

// Coefficients in own units.
export const inOwnUnits = (seen, b) => apply(seen.toOwn, b).map((value, i) => value + seen.base[i]);

// An orthonormal basis (d, p + 1) of the regressors and what is left of the label, with the way back.
function orthonormal(plan, turn) {
  const p = plan.names.length;
  const { r } = qr(plan.regressors.map((row, i) => Float64Array.of(...row, plan.label[i])));
  const own = r.map((row, i) => Math.abs(row[i])); // what each column adds to those before
  const largest = Math.max(...own.slice(0, p));
  if (own[p] < 1e-9 * norm(plan.label) || Math.min(...own.slice(0, p)) < 1e-9 * largest) {
    throw new ModelError(`The columns of this regression of ${plan.target} are exactly dependent, whatever the data are. Leave one out.`);
  }
  const { q, r: triangle } = qr(multiply(turn, plan.regressors));
  const label = apply(turn, plan.label);
  const across = transpose(q);
  const along = apply(across, label);
  const less = (vector, fitted) => vector.map((value, i) => value - fitted[i]);
  let rest = less(label, apply(q, along));
  const again = apply(across, rest); // what rounding left, where the label is nearly a combination of the regressors
  rest = less(rest, apply(q, again));
  again.forEach((value, i) => (along[i] += value));
  const labelScale = norm(rest);
  return { basis: q.map((row, i) => Float64Array.of(...row, rest[i] / labelScale)), triangle, along, labelScale };
}

const unit = (vector) => {
  const size = norm(vector);
  return vector.map((value) => value / size);
};

function additive(values, cross, noise) {
  const variance = noise.sd_off_diagonal ** 2;
  const gain = values.map((value) => value - noise.shift);
  const { mean, spread } = symmetricShrinkage(gain, variance);
  return {
    observed: cross, gain, weight: values.map(() => 1), label: variance, spread: variance, degrees: Infinity, expected: mean, others: spread,
  };
}

function wishart(values, cross, square, noise) {
  const p = values.length;
  const r = noise.degrees_of_freedom;
  if (r < p + 4) {
    throw new ModelError(
      `The release is a sketch of ${r} rows, but a regression with ${p} coefficients needs at least ${p + 4}. Use fewer features.`,
    );
  }
  const own = values.map((value) => Math.max(value, TINY));
  const weight = own.map((value) => (r - p - 1) / (r * value));
  const left = (Math.max(square - sum(own.map((value, i) => cross[i] ** 2 / value)), TINY) * r) / (r - p);
  const shrunk = wishartShrinkage(own, r).map((value) => 1 / value);
  return drawn(own, cross, noise.shift, weight, left, left / (r - p - 1), noise.shift ** 2 / (r - p - 3), r - p, shrunk);
}

function inverseWishart(values, cross, square, noise, dim) {
  const degrees = noise.degrees_of_freedom - dim + values.length; // of the block of the regressors
  const own = values.map((value) => Math.max(value, TINY));
  const weight = own.map((value) => noise.multiple / (degrees * value));
  const left = Math.max(square - sum(own.map((value, i) => cross[i] ** 2 / value)), TINY) / noise.multiple;
  const shrunk = wishartShrinkage(weight, degrees);
  const conditional = left * Math.max(degrees - 1, 1);
  return drawn(own, cross, noise.shift, weight, conditional, left, noise.shift ** 2 / degrees, degrees, shrunk);
}

function drawn(values, cross, shift, weight, conditional, label, spread, degrees, shrunk) {
  const total = sum(shrunk);
  return {
    observed: cross.map((value, i) => value / values[i]),
    gain: weight.map((w) => 1 - shift * w),
    weight,
    label,
    spread,
    degrees,
    conditional,
    expected: shrunk.map((s) => 1 - shift * s),
    others: shrunk.map((s) => spread * s * (total - s)),
  };
}

// The noise's standard deviation along the weakest directions.
const lawSd = (noise) => (isDraw(noise) ? noise.floor / Math.sqrt(noise.degrees_of_freedom) : noise.sd_off_diagonal);

// About what b^2 would be if the regressors explained the label: its sum of squares over theirs, about their means.
function expectedSize(block, noise, ones) {
  const p = block.length - 1;
  const sd = lawSd(noise);
  const own = addToDiagonal(block, -noise.shift);
  let features = 0;
  for (let i = 0; i < p; i++) features += own[i][i];
  let label = own[p][p];
  if (ones !== null && p > 1) {
    const cross = apply(own, ones);
    const size = dot(ones, cross);
    const [sides, inside] = [cross.slice(0, p), ones.slice(0, p)];
    if (dot(inside, inside) > 0.5 && size > sd) {
      features -= dot(sides, sides) / size;
      label -= cross[p] ** 2 / size;
    }
  }
  return Math.max(label, sd, TINY) / Math.max(features, sd * Math.sqrt(p), TINY);
}
