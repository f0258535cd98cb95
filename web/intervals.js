// Intervals that count the privacy noise, around the debiased estimate: Wald's, Fieller's, and of the two what is right for each
// coefficient. As dpgram.inference.intervals, whose docstring says what is assumed.

import { errorSquares, gainBelow } from "./channel.js";
import { apply, dot, transpose } from "./linalg.js";
import { exactly, farOut, locally, profile } from "./pivot.js";
import { quantile } from "./special.js";

const FAR = 1e4; // standard errors; a set that reaches so far is unbounded
const STEPS = [0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 10, 20, 50, 200, 1000, FAR];
const ABOUT = 0.1; // of a combination's squares: so much in hidden directions is more than noise would turn there
export const DOUBTFUL = 4; // below so many sds of its noise, a gain is too uncertain for first order
const HALVINGS = 12;
const sum = (values) => values.reduce((total, value) => total + value, 0);

// Variance of the errors of the unit label, floored at zero.
export const errorVariance = (seen) => Math.max(errorSquares(seen), 0) / rowsLeft(seen, seen.rows);

// By what to divide squares that so many rows left unexplained: each coefficient takes as many rows as the design effect says.
export const rowsLeft = (seen, rows) => Math.max(rows - seen.designEffect * seen.gain.length, seen.designEffect);

// By how much more or less than others the sum of squared errors may lack of long rows, as a part of it.
export const squaresLeftOpen = (seen) =>
  seen.openSquares > 0 ? seen.openSquares / Math.max(errorVariance(seen) * rowsLeft(seen, seen.rows), seen.openSquares) : 0;

// The sum of weight b^2 that the table itself has, before noise: the privacy noise grows with it.
function believedSize(seen) {
  const { estimate: b, weight, hidden, left, divisor, label, spread } = seen;
  const total = (part) => sum(weight.map((w, i) => (hidden[i] ? 0 : part(w, i))));
  const known = sum(weight.map((w, i) => (hidden[i] ? w * (b[i] ** 2 + left[i]) : 0)));
  const whole = total((w, i) => w * b[i] ** 2);
  let size = whole + known;
  for (let k = 0; k < 3; k++) {
    const excess = total((w, i) => {
      const own = (w * (label + spread * size)) / divisor[i] ** 2;
      return w * (own + spread * ((w * b[i]) / divisor[i]) ** 2);
    });
    size = known + Math.max(whole - excess, whole / 4);
  }
  return size;
}

// Covariance of the debiased coefficients in own units, as a function: variance(row) for any combination of coefficients.
export function uncertainty(seen) {
  const variance = errorVariance(seen);
  const size = believedSize(seen);
  const believedNoise = seen.weight.map((w) => w * (seen.label + seen.spread * size)); // without the rank-one part
  const byRows = seen.perRow.map((v) => seen.designEffect * variance * v);
  const clear = Array.from(seen.divisor, (x, i) => (seen.hidden[i] ? 0 : 1 / x));
  const inside = {
    noise: clear.map((c, j) => seen.left[j] + c ** 2 * believedNoise[j]),
    rows: clear.map((c, j) => c ** 2 * byRows[j]),
    clipping: clear.map((c) => c ** 2 * seen.byClipping),
  };
  const p = clear.length;
  const along = clear.map((c, j) => c * seen.weight[j] * seen.estimate[j]);
  const parts = (combination) => {
    const [row, leaning] = [new Float64Array(p), new Float64Array(p)];
    combination.forEach((factor, i) => {
      if (factor === 0) return;
      for (let j = 0; j < p; j++) {
        row[j] += factor * seen.toOwn[i][j];
        leaning[j] += factor * seen.leaning[i] * seen.toOwn[i][j];
      }
    });
    let [privacy, sampling, clipping] = [seen.spread * dot(row, along) ** 2, 0, 0];
    for (let j = 0; j < p; j++) {
      privacy += row[j] ** 2 * inside.noise[j];
      sampling += row[j] ** 2 * inside.rows[j];
      clipping += leaning[j] ** 2 * inside.clipping[j];
    }
    return { privacy, sampling, clipping, whole: privacy + sampling + clipping };
  };
  const own = Array.from({ length: p }, (_, i) => parts(Float64Array.from({ length: p }, (_, j) => (i === j ? 1 : 0))));
  return {
    variance,
    parts,
    size,
    believedNoise,
    byTable: byRows.map((v) => v + seen.byClipping), // the variance in what was observed that is no noise
    along,
    byNoiseAndRows: clear.map((_, j) => inside.noise[j] + inside.rows[j]),
    byClipping: inside.clipping,
    spent: clear.map((_, j) => inside.noise[j] + inside.rows[j] + inside.clipping[j]), // in each direction, without the rank-one part
    se: own.map((v) => Math.sqrt(v.whole)),
    sePrivacy: own.map((v) => Math.sqrt(v.privacy)),
    seSampling: own.map((v) => Math.sqrt(v.sampling)),
    seClipping: own.map((v) => Math.sqrt(v.clipping)),
  };
}

export const wald = (seen, known, confidence) =>
  Array.from(seen.gain, (_, place) => waldOf(seen, confidence, coefficientAt(seen, known, place)));

function waldOf(seen, confidence, { se, estimate }) {
  const reach = quantile(confidence, seen.degrees) * se;
  return { lower: estimate - reach, upper: estimate + reach, method: "wald" };
}

// What intervals and tests are about: one coefficient, or a combination of all of them with `weights`.
export const coefficientAt = (seen, known, place) => ({
  row: seen.toOwn[place], base: seen.base[place], se: known.se[place], estimate: dot(seen.toOwn[place], seen.estimate) + seen.base[place],
});

export function combination(seen, known, weights) {
  const row = apply(transpose(seen.toOwn), weights);
  const base = dot(seen.base, weights);
  return { row, base, se: Math.sqrt(known.parts(weights).whole), estimate: dot(row, seen.estimate) + base };
}

// Its interval by inversion of the test of `of`.
// The estimate is in it, too: where noise hides a direction it is shrunk, so that at a low confidence the test may reject it.
function inverted(seen, of, confidence, { row, base, se, estimate }) {
  const limit = quantile(confidence, seen.degrees) ** 2;
  const origin = dot(row, of.estimate); // where the statistic is about least
  const accepted = (steps) => profile(of, [row], [origin + se * steps], limit) <= limit;
  if (farOut(of) <= limit || accepted(-FAR) || accepted(FAR)) return { lower: -Infinity, upper: Infinity, method: "fieller" };
  const end = (sign) => {
    const grid = [0, ...STEPS];
    let last = STEPS.length - 1; // the farthest step within
    while (last > 0 && !accepted(sign * STEPS[last - 1])) last--;
    let [low, high] = [grid[last], grid[last + 1]];
    for (let k = 0; k < HALVINGS; k++) {
      const middle = (low + high) / 2;
      if (accepted(sign * middle)) low = middle;
      else high = middle;
    }
    return base + origin + se * sign * high;
  };
  return { lower: Math.min(end(-1), estimate), upper: Math.max(end(1), estimate), method: "fieller" };
}

export const fieller = (seen, known, confidence) => {
  const of = exactly(seen, known);
  return Array.from(seen.gain, (_, place) => inverted(seen, of, confidence, coefficientAt(seen, known, place)));
};

// Which combinations, rows in the channel's own basis, owe most of their variance to directions whose gain may well be zero. Those that may
// have no gain at all count only for combinations that are about them: what they add to others, because noise turned them there, is bounded.
export function weaklyIdentified(seen, known, rows, below) {
  const weak = below === undefined ? seen.hidden : gainBelow(seen, below);
  if (!weak.includes(true)) return rows.map(() => false);
  const some = seen.hidden.includes(true);
  const endless = weak.map((is, j) => is && !seen.hidden[j]);
  return rows.map((row) => {
    const mostly = share(row, known.spent, weak) > 0.5;
    if (!some || !mostly) return mostly;
    return share(row, known.spent, endless) > 0.5 || share(row, row.map(() => 1), weak) > ABOUT;
  });
}

// How much of the variance of a combination comes from some of the directions.
function share(row, variances, which) {
  let [part, whole] = [0, 0];
  row.forEach((value, j) => {
    const square = value ** 2 * variances[j];
    whole += square;
    if (which[j]) part += square;
  });
  return part / whole;
}

// The test that each interval comes from: null stands for Wald's. One for each coefficient, or for each of the combinations `rows`.
export function tests(seen, known, intervals, rows = seen.toOwn) {
  if (intervals === "fieller") {
    const of = exactly(seen, known);
    return rows.map(() => of);
  }
  if (intervals !== "auto") return rows.map(() => null);
  const weak = weaklyIdentified(seen, known, rows);
  const doubtful = weaklyIdentified(seen, known, rows, DOUBTFUL);
  const [exact, local] = [exactly(seen, known), locally(seen, known)];
  return rows.map((_, i) => (weak[i] ? exact : doubtful[i] ? local : null));
}

// The interval of a combination by the test that was chosen for it.
export const intervalBy = (seen, of, confidence, one) => (of === null ? waldOf(seen, confidence, one) : inverted(seen, of, confidence, one));

// Wald's intervals, and Fieller's for what is identified weakly or doubtfully.
export function automatic(seen, known, confidence) {
  return tests(seen, known, "auto").map((of, place) => intervalBy(seen, of, confidence, coefficientAt(seen, known, place)));
}
