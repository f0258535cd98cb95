// Normal, Student, chi-square and F: tails and quantiles, to about twelve digits. No table has them for degrees of freedom that
// are not whole, which noise often has.

const LOG_ROOT_TWO_PI = 0.5 * Math.log(2 * Math.PI);
const TINY = 1e-300;
const MOST_TERMS = 100000; // series and fractions below stop long before, at double precision

// log Gamma(a) less Stirling's formula (a - 1/2) log a - a + log sqrt(2 pi), for a >= 10.
function stirlingRest(a) {
  const s = 1 / (a * a);
  return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - (s * 691) / 360360))))) / a;
}

export function logGamma(a) {
  let below = 0;
  for (; a < 10; a++) below += Math.log(a);
  return (a - 0.5) * Math.log(a) - a + LOG_ROOT_TWO_PI + stirlingRest(a) - below;
}

// log B(a, b) without the cancellation of three large logarithms.
function logBeta(a, b) {
  if (a < b) [a, b] = [b, a];
  if (a < 10) return logGamma(a) + logGamma(b) - logGamma(a + b);
  if (b < 10) {
    const rise = (a - 0.5) * Math.log1p(b / a) + b * Math.log(a + b) - b + stirlingRest(a + b) - stirlingRest(a);
    return logGamma(b) - rise; // Gamma(a + b) / Gamma(a) is exp(rise)
  }
  return (
    LOG_ROOT_TWO_PI + stirlingRest(a) + stirlingRest(b) - stirlingRest(a + b)
    - 0.5 * Math.log(b) - (a - 0.5) * Math.log1p(b / a) + b * Math.log(b / (a + b))
  );
}

// A continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)), by the method of Lentz.
function fraction(first, term) {
  let value = first || TINY;
  let c = value;
  let d = 0;
  for (let k = 1; k < MOST_TERMS; k++) {
    const [a, b] = term(k);
    d = 1 / (b + a * d || TINY);
    c = b + a / c || TINY;
    value *= c * d;
    if (Math.abs(c * d - 1) < 5e-16) break;
  }
  return value;
}

// x^a e^-x / Gamma(a), accurate for large a too.
function gammaDensity(a, x) {
  if (x === 0) return 0;
  if (a < 10) return Math.exp(a * Math.log(x) - x - logGamma(a));
  const apart = (x - a) / a;
  const log = Math.abs(apart) < 0.5 ? Math.log1p(apart) - apart : Math.log(x / a) - apart;
  return Math.sqrt(a) * Math.exp(a * log - LOG_ROOT_TWO_PI - stirlingRest(a));
}

// The share of a Gamma(a) variate above x.
export function gammaAbove(a, x) {
  if (x <= 0) return 1;
  return x < a + 1 ? 1 - gammaSeries(a, x) : gammaDensity(a, x) / gammaFraction(a, x);
}

// ... and below x.
export function gammaBelow(a, x) {
  if (x <= 0) return 0;
  return x < a + 1 ? gammaSeries(a, x) : 1 - gammaDensity(a, x) / gammaFraction(a, x);
}

function gammaSeries(a, x) {
  let term = 1 / a;
  let sum = term;
  for (let k = 1; k < MOST_TERMS && term > 1e-17 * sum; k++) sum += term *= x / (a + k);
  return gammaDensity(a, x) * sum;
}

const gammaFraction = (a, x) => fraction(x + 1 - a, (k) => [-k * (k - a), x + 2 * k + 1 - a]);

// I_x(a, b), with y = 1 - x given as well, because it may be much smaller than a double can tell.
export function betaBelow(a, b, x, y = 1 - x) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaBelow(b, a, y, x);
  const log = a * (y < 0.5 ? Math.log1p(-y) : Math.log(x)) + b * (x < 0.5 ? Math.log1p(-x) : Math.log(y)) - logBeta(a, b);
  const term = (k) => {
    if (k === 1) return [1, 1];
    const i = (k - 1) >> 1;
    const odd = (k - 1) % 2 === 1;
    if (odd) return [(-(a + i) * (a + b + i) * x) / ((a + 2 * i) * (a + 2 * i + 1)), 1];
    return [(i * (b - i) * x) / ((a + 2 * i - 1) * (a + 2 * i)), 1];
  };
  return (Math.exp(log) / a) * fraction(0, term);
}

// exp(x^2) erfc(x) for x >= 0.
function scaledErfc(x) {
  if (x < 2) return Math.exp(x * x) * gammaAbove(0.5, x * x);
  return 1 / (Math.sqrt(Math.PI) * fraction(x, (k) => [k / 2, x]));
}

// The normal distribution function, and its logarithm.
export function normalBelow(x) {
  const tail = 0.5 * gammaAbove(0.5, (x * x) / 2);
  return x < 0 ? tail : 1 - tail;
}

export function logNormalBelow(x) {
  return x < 0 ? Math.log(0.5 * scaledErfc(-x / Math.SQRT2)) - (x * x) / 2 : Math.log1p(-0.5 * gammaAbove(0.5, (x * x) / 2));
}

// z with a share `tail` of the normal distribution above it, tail <= 1/2: the start of Abramowitz and Stegun 26.2.23, then Halley's steps.
export function normalAbove(tail) {
  const t = Math.sqrt(-2 * Math.log(tail));
  let z = t - (2.515517 + t * (0.802853 + 0.010328 * t)) / (1 + t * (1.432788 + t * (0.189269 + 0.001308 * t)));
  for (let k = 0; k < 4; k++) {
    const step = (gammaAbove(0.5, (z * z) / 2) / 2 - tail) * Math.sqrt(2 * Math.PI) * Math.exp((z * z) / 2);
    z += step / (1 - (z * step) / 2);
  }
  return z;
}

// t with a share `tail` of Student's distribution above it.
export function studentAbove(degrees, tail) {
  const z = normalAbove(tail);
  const expanded =
    z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2)
    + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * degrees ** 3);
  if (degrees > 1e5 || z === 0) return expanded;
  const above = (t) => 0.5 * betaBelow(degrees / 2, 0.5, degrees / (degrees + t * t), (t * t) / (degrees + t * t));
  return falling(above, tail, Math.max(expanded, z));
}

// x with a share `share` of chi-square below it, or above it, over its degrees of freedom.
export const chiSquareBelow = (degrees, share) => chiSquareOver(degrees, share, false);
export const chiSquareAbove = (degrees, share) => chiSquareOver(degrees, share, true);

function chiSquareOver(degrees, share, above) {
  if (degrees > 2e4) {
    const z = (above ? 1 : -1) * normalAbove(share);
    const root = Math.SQRT2;
    const terms = [
      z * root,
      (2 / 3) * (z ** 2 - 1),
      (z ** 3 - 7 * z) / (9 * root),
      -(6 * z ** 4 + 14 * z ** 2 - 32) / 405,
      (9 * z ** 5 + 256 * z ** 3 - 433 * z) / (4860 * root),
    ]; // Goldberg and Levine 1946, in powers of degrees^(-1/2)
    return 1 + terms.reduce((sum, term, k) => sum + term * degrees ** (-(k + 1) / 2), 0);
  }
  const a = degrees / 2;
  if (above) return falling((x) => gammaAbove(a, a * x), share, 1);
  return 1 / falling((x) => gammaBelow(a, a / x), share, 1);
}

// x > 0 with f(x) = wanted, for an f that falls from 1 or so to 0: secants on the logarithm, kept within a bracket.
function falling(f, wanted, start) {
  let low = start;
  let high = start;
  while (f(low) < wanted) low /= 2;
  while (f(high) > wanted) high *= 2;
  const gap = (x) => Math.log(f(x) / wanted);
  let [first, last] = [gap(low), gap(high)];
  if (first === 0) return low;
  for (let k = 0; k < 200 && high - low > 1e-15 * high; k++) {
    let x = low + ((high - low) * first) / (first - last);
    if (!(x > low && x < high) || k % 3 === 2) x = (low + high) / 2;
    const found = gap(x);
    if (found === 0) return x;
    if (found > 0) [low, first] = [x, found];
    else [high, last] = [x, found];
  }
  return (low + high) / 2;
}

// How many standard errors an interval reaches to each side. `degrees` is Infinity for normal noise.
export function quantile(confidence, degrees) {
  const tail = (1 - confidence) / 2;
  return degrees === Infinity ? normalAbove(tail) : studentAbove(degrees, tail);
}

// The chance of a statistic so large: chi-square with `count` degrees of freedom, or F where the noise has few of its own.
export function pValue(statistic, count, degrees) {
  const found = Math.max(statistic, 0);
  if (degrees === Infinity) return gammaAbove(count / 2, found / 2);
  const x = degrees / (degrees + found);
  return betaBelow(degrees / 2, count / 2, x, found / (degrees + found));
}
