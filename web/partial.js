// Partial correlations of columns of a release, each pair given all the others, with standard errors and intervals. As
// dpgram.inference.partial, whose docstring says why.

import { makeChannel } from "./channel.js";
import { designOf, ModelError } from "./design.js";
import { debiased } from "./estimate.js";
import { errorVariance, rowsLeft, squaresLeftOpen, uncertainty, weaklyIdentified } from "./intervals.js";
import { zeros } from "./linalg.js";
import { noiseLaw } from "./noise.js";
import { quantile } from "./special.js";

const LARGEST = 1 - 1e-12; // Fisher's z is finite below it

// Of the columns at `places`, two or more of them, none the intercept: names, and matrices with what is known of each pair.
export function partials(release, places, confidence = 0.95) {
  const p = places.length;
  const { encoded } = release;
  const [slopes, noise, clip] = [zeros(p, p), zeros(p, p), zeros(p, p)];
  const known = places.map(() => new Array(p).fill(false));
  const [left, unsure] = [new Float64Array(p), new Float64Array(p)];
  const residuals = [];
  let last = null;
  places.forEach((target, i) => {
    const others = [...places.keys()].filter((j) => j !== i);
    const plan = designOf(release, target, others.map((j) => places[j]), true);
    const seen = makeChannel(release, plan);
    if (!seen.debiased.every((gain) => gain > 0)) throw new ModelError("These columns are exactly dependent in the release. Leave one out.");
    const parted = uncertainty(seen);
    const own = debiased(seen);
    const weak = weaklyIdentified(seen, parted, seen.toOwn);
    const { half, centre } = encoded[target];
    const residual = new Float64Array(encoded.length);
    residual[target] = half;
    residual[0] += centre - own[0];
    others.forEach((j, k) => {
      slopes[i][j] = own[k + 1];
      noise[i][j] = parted.sePrivacy[k + 1];
      clip[i][j] = parted.seClipping[k + 1];
      known[i][j] = !weak[k + 1];
      residual[places[j]] -= own[k + 1] * encoded[places[j]].half;
      residual[0] -= own[k + 1] * encoded[places[j]].centre;
    });
    left[i] = Math.sqrt(errorVariance(seen)) * seen.labelScale * half;
    unsure[i] = squaresLeftOpen(seen);
    residuals.push(residual.map((value) => value / left[i]));
    last = seen;
  });
  const mean = (values, i, j) => ((left[j] / left[i]) * values[i][j] + (left[i] / left[j]) * values[j][i]) / 2;
  const less = lessNoise(release, residuals);
  const pair = (i, j) => {
    const r = mean(slopes, i, j);
    const clipping = Math.hypot(mean(clip, i, j), (r / 2) * Math.hypot(unsure[i], unsure[j]));
    const privacy = mean(noise, i, j) * less(i, j, r);
    const identified = known[i][j] && known[j][i] && [r, privacy, clipping].every(Number.isFinite) && Math.abs(r) < LARGEST;
    const partial = Number.isFinite(r) ? Math.min(Math.max(r, -1), 1) : 0;
    const sampling = (1 - partial ** 2) * Math.sqrt(last.designEffect / rowsLeft(last, last.rows));
    const clipped = clip[i][j] + clip[j][i] + unsure[i] + unsure[j] === 0 ? 0 : 1;
    const se = Math.hypot(sampling, Number.isFinite(privacy) ? privacy : 1, Number.isFinite(clipping) ? clipping : clipped);
    if (!identified) return { partial, se, lower: -1, upper: 1, identified };
    const reach = (quantile(confidence, last.degrees) * se) / (1 - partial ** 2);
    const [lower, upper] = [-reach, reach].map((step) => Math.tanh(Math.atanh(partial) + step));
    return { partial, se, lower, upper, identified };
  };
  const whole = { partial: 1, se: 0, lower: 1, upper: 1, identified: true };
  const pairs = places.map((_, i) => places.map((_, j) => (i === j ? whole : pair(i, j))));
  return { names: places.map((j) => encoded[j].name), pairs };
}

// What the noise's standard error of a partial correlation is of the mean of those of both regressions.
function lessNoise(release, residuals) {
  const told = residuals.map((one) => one.every(Number.isFinite));
  const { products, excess, forms } = noiseLaw(release.evidence, residuals.map((one, i) => (told[i] ? one : one.map(() => 0))));
  const power = (i, j, a, b) => (excess === 0 ? 0 : excess * forms[i].reduce((total, value, k) => total + value ** a * forms[j][k] ** b, 0));
  const own = (i) => products[i][i];
  const whole = (i) => 2 * own(i) ** 2 + power(i, i, 2, 2);
  const first = (i, mixed, ends, r) => Math.sqrt(Math.max(mixed + 2 * r * ends + r ** 2 * whole(i), 0));
  return (i, j, r) => {
    if (!told[i] || !told[j]) return 1;
    const mixed = own(i) * own(j) + products[i][j] ** 2 + power(i, j, 2, 2);
    const [ends, others] = [2 * own(i) * products[i][j] + power(i, j, 3, 1), 2 * own(j) * products[i][j] + power(j, i, 3, 1)];
    const apart = 2 * products[i][j] ** 2 + power(i, j, 2, 2);
    const both = mixed + r * (ends + others) + (r ** 2 / 4) * (whole(i) + whole(j) + 2 * apart);
    return (2 * Math.sqrt(Math.max(both, 0))) / (first(i, mixed, ends, r) + first(j, mixed, others, r));
  };
}
