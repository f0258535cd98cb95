// Eigenvalues seen through noise: what they were, how sure that is, and how to invert without bias. As dpgram.linalg.shrinkage.

import { logNormalBelow } from "./special.js";

const STEPS = 200; // of a search that takes about ten
const sum = (values) => values.reduce((total, value) => total + value, 0);

// For each eigenvector of G + N its mean in G, and the spread of G's other entries in its row (Bun, Bouchaud and Potters 2017).
export function symmetricShrinkage(values, variance) {
  const p = values.length;
  const square = (Math.sqrt(variance) * p ** 0.25) / 2;
  const mean = new Float64Array(p);
  const spread = new Float64Array(p);
  for (let i = 0; i < p; i++) {
    let pull = 0;
    let density = 0;
    for (let j = 0; j < p; j++) {
      const apart = values[i] - values[j];
      const size = apart ** 2 + square ** 2;
      if (i === j || size === 0) continue;
      pull += apart / size;
      density += square / size;
    }
    mean[i] = values[i] - 2 * variance * pull;
    spread[i] = Math.max(variance * p - variance ** 2 * (pull ** 2 + density ** 2) - variance, 0);
  }
  return { mean, spread };
}

// The same for the eigenvalues of W(S, degrees) / degrees (Ledoit and Peche 2011).
export function wishartShrinkage(values, degrees) {
  const p = values.length;
  return values.map((own, i) => {
    const width = (own * degrees ** -0.5 * p ** 0.25) / 2;
    let real = 0;
    let imaginary = 0;
    for (let j = 0; j < p; j++) {
      if (i === j) continue;
      const apart = values[j] - own; // 1 / (apart - i width)
      const size = apart ** 2 + width ** 2;
      real += apart / size;
      imaginary += width / size;
    }
    const first = 1 - p / degrees - (own * real) / degrees;
    const second = (own * imaginary) / degrees;
    return own / (first ** 2 + second ** 2);
  });
}

// Mean and mean square of normal variates given that they are positive.
export function positiveMoments(means, sds) {
  const first = new Float64Array(means.length);
  const second = new Float64Array(means.length);
  means.forEach((mean, i) => {
    const sd = sds[i];
    if (!(sd > 0)) {
      first[i] = Math.max(mean, 0);
      second[i] = first[i] ** 2;
    } else if (mean / sd < -30) { // an exponential variate is left
      first[i] = -sd / (mean / sd);
      second[i] = 2 * first[i] ** 2;
    } else {
      const at = mean / sd;
      const hazard = Math.exp(-(at ** 2) / 2 - 0.5 * Math.log(2 * Math.PI) - logNormalBelow(at));
      first[i] = mean + sd * hazard;
      second[i] = mean ** 2 + sd ** 2 + sd * mean * hazard;
    }
  });
  return { first, second };
}

// x > 0 such that diag(1/x) is, to second order, an unbiased inverse of what `gain` was before noise:
// x_i = gain_i + spread weight_i (sum_j weight_j / x_j + weight_i / x_i).
export function debiasedGain(gain, weight, spread) {
  if (spread === 0) return Float64Array.from(gain);
  const roots = (total) => {
    const x = gain.map((own, i) => {
      const a = own + spread * weight[i] * total;
      const q = 4 * spread * weight[i] ** 2;
      const root = Math.sqrt(a ** 2 + q);
      return (a > 0 ? a + root : q / (root - a)) / 2;
    });
    return { x, excess: sum(weight.map((w, i) => w / x[i])) - total };
  };
  let below = 0;
  let above = 1 / Math.sqrt(spread);
  while (roots(above).excess > 0) [below, above] = [above, 4 * above];
  let total = above;
  for (let step = 0; step < STEPS; step++) {
    const { x, excess } = roots(total);
    if (excess > 0) below = total;
    else above = total;
    const slope = 1 + sum(weight.map((w, i) => (spread * w ** 2) / (x[i] * (2 * x[i] - gain[i] - spread * w * total))));
    const move = excess / slope;
    if (Math.abs(move) <= 1e-14 * total) break;
    total = total + move > below && total + move < above ? total + move : (below + above) / 2;
  }
  return roots(total).x;
}
