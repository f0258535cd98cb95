// Means and correlations with standard errors from a release. As dpgram.regression.moments and dpgram.inference.moments.

import { addToDiagonal, apply, dot, inverse, multiply, scaleColumns, transpose } from "./linalg.js";
import { eigenSymmetric } from "./eigen.js";
import { sdOffDiagonal } from "./channel.js";

const STRENGTH = 0.25; // of the prior that favours large determinants

// The positive definite matrix closest to `matrix` under that prior: large eigenvalues hardly move, those below the noise become positive.
function logDetRepair(matrix, sd) {
  const { values, vectors } = eigenSymmetric(matrix);
  const lift = 8 * STRENGTH * matrix.length * sd ** 2;
  const repaired = values.map((w) => {
    const root = Math.sqrt(w ** 2 + lift);
    return w >= 0 ? (w + root) / 2 : lift / 2 / (root - w);
  });
  return multiply(scaleColumns(vectors, repaired), transpose(vectors));
}

export function repaired(release) {
  const { noise, gram, rounds } = release;
  if (rounds) return rounds.repaired; // found by many steps, in Python
  if (noise.shape === "noisy-inverse") return inverse(logDetRepair(inverse(gram), noise.sd_off_diagonal_of_inverse));
  return logDetRepair(addToDiagonal(gram, -noise.shift), sdOffDiagonal(noise));
}

// Of all columns but the intercept: names, means and sds in own units, correlations and their standard errors. Null without an intercept.
export function moments(release) {
  if (!release.intercept) return null;
  const { encoded, rows } = release;
  const gram = repaired(release);
  const places = [...encoded.keys()].slice(1);
  const count = gram[0][0];
  const middle = places.map((j) => gram[0][j] / count); // means in scaled units
  const inner = (i, j) => (gram[places[i]][places[j]] + gram[places[j]][places[i]]) / 2 / count - middle[i] * middle[j];
  const size = places.map((_, i) => Math.sqrt(inner(i, i)));
  const correlation = places.map((_, i) =>
    Float64Array.from(places, (_, j) => (i === j ? 1 : Math.min(Math.max(inner(i, j) / size[i] / size[j], -1), 1))),
  );
  const unshrunk = release.rounds || release.rowBound >= release.largestNorm;
  const whole = Math.max(rows && unshrunk ? rows : count, 1);
  return {
    names: places.map((j) => encoded[j].name),
    mean: places.map((j, i) => encoded[j].centre + encoded[j].half * middle[i]),
    sd: places.map((j, i) => encoded[j].half * size[i]),
    correlation,
    se: correlationErrors(release, places, middle, size, correlation, whole),
  };
}

// To first order a correlation r moves by a'Eb - r/2 (a'Ea + b'Eb), for standardised columns a and b as the noise E sees them.
function correlationErrors(release, places, middle, size, correlation, rows) {
  const { products, excess, forms } = noiseLaw(
    release,
    places.map((j, i) => {
      const about = new Float64Array(release.encoded.length);
      about[0] = -middle[i] / size[i];
      about[j] += 1 / size[i];
      return about;
    }),
  );
  const [squares, cubes] = [2, 3].map((power) => forms.map((form) => form.map((value) => value ** power)));
  const fourths = (left, right) => (excess === 0 ? 0 : excess * dot(left, right));
  return places.map((_, i) =>
    Float64Array.from(places, (_, j) => {
      if (i === j) return 0;
      const r = correlation[i][j];
      const [a, b, ab, fourth] = [products[i][i], products[j][j], products[i][j], fourths(squares[i], squares[j])];
      const ends = 2 * (a + b) * ab + fourths(cubes[i], forms[j]) + fourths(forms[i], cubes[j]);
      const own = 2 * a ** 2 + fourths(squares[i], squares[i]) + 2 * b ** 2 + fourths(squares[j], squares[j]);
      const moved = a * b + ab ** 2 + fourth - r * ends + (r ** 2 / 4) * (own + 2 * (2 * ab ** 2 + fourth));
      return Math.sqrt(Math.max(moved, 0) / rows ** 2 + (1 - r ** 2) ** 2 / rows);
    }),
  );
}

// Products K and the rest e with Cov(a'Eb, c'Ed) = K_ac K_bd + K_ad K_bc + e sum_i a_i b_i c_i d_i; vectors as the noise sees them.
function noiseLaw(release, forms) {
  const { gram, rounds } = release;
  const noise = rounds ? rounds.noise : release.noise;
  const inner = (left, right, factor) => left.map((a) => Float64Array.from(right, (b) => factor * dot(a, b)));
  if (noise.degrees_of_freedom !== undefined) {
    const seen = forms.map((form) => apply(gram, form));
    return { products: inner(forms, seen, 1 / Math.sqrt(noise.degrees_of_freedom)), excess: 0, forms };
  }
  const ofInverse = noise.shape === "noisy-inverse";
  const off = ofInverse ? noise.sd_off_diagonal_of_inverse : noise.sd_off_diagonal;
  const on = ofInverse ? noise.sd_diagonal_of_inverse : noise.sd_diagonal;
  const seen = ofInverse || rounds ? forms.map((form) => apply(rounds ? rounds.turn : gram, form)) : forms;
  const excess = on ** 2 - 2 * off ** 2; // nothing but rounding for the Gaussian orthogonal ensemble
  return { products: inner(seen, seen, off), excess: Math.abs(excess) < 1e-12 * on ** 2 ? 0 : excess, forms: seen };
}
