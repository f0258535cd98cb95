// Coefficients in own units: `debiased`, which intervals are about, and `shrunk`, which predictions use. As dpgram.regression.fit.

import { inOwnUnits } from "./channel.js";
import { positiveMoments } from "./shrinkage.js";

const PSEUDO_COEFFICIENTS = 4; // how much the expected size of coefficients counts, beside what is seen of them
const GRID = Array.from({ length: 81 }, (_, k) => -9 + (16 * k) / 80); // of the logarithm of a coefficient's variance

export const debiased = (seen) => inOwnUnits(seen, seen.estimate);

// The coefficients with the smallest mean square error to be expected.
export function shrunk(seen) {
  const { first: mean, second } = positiveMoments(seen.expected, seen.gainSd);
  const square = second.map((value, i) => value + seen.others[i]);
  const noise = seen.weight.map((w) => seen.label * w);
  const heights = GRID.map((step) => {
    const logSize = Math.log(seen.scale) + step;
    const size = Math.exp(logSize);
    let fitted = 0;
    seen.observed.forEach((value, i) => {
      const total = size * square[i] + noise[i];
      fitted += Math.log(total) + value ** 2 / total;
    });
    return -0.5 * fitted - 0.5 * PSEUDO_COEFFICIENTS * (logSize + Math.exp(-step));
  });
  const highest = Math.max(...heights);
  const chances = heights.map((height) => Math.exp(height - highest));
  const whole = chances.reduce((total, chance) => total + chance, 0);
  const sizes = GRID.map((step) => Math.exp(Math.log(seen.scale) + step));
  const factor = seen.observed.map((_, i) => {
    let found = 0;
    sizes.forEach((size, k) => (found += (chances[k] * size * mean[i]) / (size * square[i] + noise[i])));
    return found / whole;
  });
  return inOwnUnits(seen, seen.observed.map((value, i) => factor[i] * value));
}
