// Means and correlations with standard errors from a release. As dpgram.regression.moments and dpgram.inference.moments.

import { dot } from "./linalg.js";
import { noiseLaw } from "./noise.js";

// Of all columns but the intercept: names, means and sds in own units, correlations and their standard errors. Null without an intercept.
export function moments(release) {
  if (!release.intercept) return null;
  const { encoded, rows, evidence } = release;
  const gram = evidence.repaired;
  const places = [...encoded.keys()].slice(1);
  const count = gram[0][0];
  const middle = places.map((j) => gram[0][j] / count); // means in scaled units
  const inner = (i, j) => (gram[places[i]][places[j]] + gram[places[j]][places[i]]) / 2 / count - middle[i] * middle[j];
  const size = places.map((_, i) => Math.sqrt(inner(i, i)));
  const correlation = places.map((_, i) =>
    Float64Array.from(places, (_, j) => (i === j ? 1 : Math.min(Math.max(inner(i, j) / size[i] / size[j], -1), 1))),
  );
  const whole = Math.max(evidence.countsPartly ? evidence.counted.rows : rows && evidence.neverShrunk ? rows : count, 1);
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
    release.evidence,
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
      return Math.sqrt(Math.max(moved, 0) / rows ** 2 + ((1 - r ** 2) ** 2 * release.evidence.designEffect) / rows);
    }),
  );
}
