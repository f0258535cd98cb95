// How the privacy noise moves sums of products. As Evidence.noise_law in Python.

import { apply, dot } from "./linalg.js";

// Products K and the rest e with Cov(a'Eb, c'Ed) = K_ac K_bd + K_ad K_bc + e sum_i a_i b_i c_i d_i; vectors as the noise sees them.
export function noiseLaw({ alone: { matrix, law }, byNoise }, forms) {
  const inner = (left, right, factor) => left.map((a) => Float64Array.from(right, (b) => factor * dot(a, b)));
  if (law.degrees_of_freedom !== undefined) {
    const seen = forms.map((form) => apply(matrix, form));
    return { products: inner(forms, seen, 1 / Math.sqrt(law.degrees_of_freedom)), excess: 0, forms };
  }
  const { sd_off_diagonal: off, sd_diagonal: on } = law;
  const seen = byNoise ? forms.map((form) => apply(byNoise, form)) : forms;
  const excess = on ** 2 - 2 * off ** 2; // nothing but rounding for the Gaussian orthogonal ensemble
  return { products: inner(seen, seen, off), excess: Math.abs(excess) < 1e-12 * on ** 2 ? 0 : excess, forms: seen };
}
