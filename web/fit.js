// One regression from a release: what `dpgram regress --json` prints, and predictions. As dpgram.analysis.fit.

import { makeChannel } from "./channel.js";
import { INTERCEPT, madeUp, makeDesign, unmarked } from "./design.js";
import { ownFeatures } from "./encode.js";
import { debiased, shrunk } from "./estimate.js";
import { goodness } from "./goodness.js";
import { jointTest, statistic } from "./hypotheses.js";
import { automatic, coefficientAt, combination, fieller, intervalBy, tests, uncertainty, wald, weaklyIdentified } from "./intervals.js";
import { multiply, dot } from "./linalg.js";
import { pValue, quantile } from "./special.js";

// `target` is a place in the matrix, `columns` the features' names. `intervals`: auto, wald, fieller or bootstrap.
export function fit(release, target, columns, options = {}) {
  const { confidence = 0.95, intervals = "auto", intercept = true } = options;
  const plan = makeDesign(release, target, columns, intercept);
  const seen = makeChannel(release, plan);
  const known = uncertainty(seen);
  const [params, estimates] = [debiased(seen), shrunk(release.evidence.together === release.evidence.alone ? seen : makeChannel(release, plan, true))];
  const made = {
    auto: () => automatic(seen, known, confidence),
    wald: () => wald(seen, known, confidence),
    fieller: () => fieller(seen, known, confidence),
    bootstrap: () => storedBootstrap(release, plan, confidence),
  }[intervals]();
  const chosen = tests(seen, known, intervals);
  const coefficients = plan.names.map((name, i) => {
    const { lower, upper, method } = made[i];
    const z = params[i] / known.se[i];
    return {
      name,
      place: plan.places[i],
      coefficient: params[i],
      shrunk: estimates[i],
      se: known.se[i],
      seSampling: known.seSampling[i],
      sePrivacy: known.sePrivacy[i],
      seClipping: known.seClipping[i],
      z: known.se[i] > 0 ? z : null,
      pValue: made[i].pValue ?? pValue(statistic(chosen[i], coefficientAt(seen, known, i)), 1, seen.degrees),
      lower,
      upper,
      identified: Number.isFinite(lower) && Number.isFinite(upper),
      interval: method,
    };
  });
  const good = goodness(release, plan, confidence);
  const joint = jointTests(seen, known, plan, intervals);
  if (intervals === "bootstrap") {
    const { jointPValues } = findBootstrap(release, plan.names, plan.target, confidence);
    joint.forEach((test, k) => (test.pValue = jointPValues[k]));
  }
  return {
    target: plan.target,
    confidence,
    intervals,
    coefficients,
    ...good,
    jointTests: joint,
    countedRows: seen.rows,
    designEffect: seen.designEffect,
    effectiveRows: seen.rows / seen.designEffect,
    degrees: seen.degrees,
    notes: notes(release, plan.target, coefficients, intervals, seen, joint),
    contrast: (weights) => contrast(seen, known, intervals, confidence, weights),
    predict: (cells) => predict(release, plan, seen, known, params, estimates, good, confidence, cells),
  };
}

function jointTests(seen, known, plan, intervals) {
  const groups = plan.groups.filter(([, places]) => places.length > 1);
  const slopes = [...plan.names.keys()].filter((j) => plan.names[j] !== INTERCEPT);
  if (slopes.length > 1 && plan.groups.length > 1) groups.push(["all features", slopes]);
  return groups.map(([name, places]) => ({ name, ...jointTest(seen, known, places, intervals), restrictions: places.length }));
}

// A combination of the coefficients, with one weight for each: its estimate, interval and test, as `Fit.t_test` gives them. Simulated intervals
// are not there for combinations: these are chosen as "auto" chooses.
function contrast(seen, known, intervals, confidence, weights) {
  const one = combination(seen, known, weights);
  const [of] = tests(seen, known, intervals === "bootstrap" ? "auto" : intervals, [one.row]);
  const { lower, upper, method } = intervalBy(seen, of, confidence, one);
  return {
    estimate: one.estimate, se: one.se, lower, upper, identified: Number.isFinite(lower) && Number.isFinite(upper), interval: method,
    pValue: pValue(statistic(of, one), 1, seen.degrees),
  };
}

// Intervals that were simulated in Python when the page was made, if it has them for this very model.
export function findBootstrap(release, names, target, confidence) {
  return (release.bootstrap ?? []).find(
    (one) => one.target === target && one.confidence === confidence && one.names.join("\n") === names.join("\n"),
  );
}

function storedBootstrap(release, plan, confidence) {
  const one = findBootstrap(release, plan.names, plan.target, confidence);
  return one.lower.map((lower, i) => ({ lower, upper: one.upper[i], pValue: one.pValues[i], method: "bootstrap" }));
}

function notes(release, target, coefficients, intervals, seen, joint) {
  const found = [];
  if (!release.private) found.push("NOT PRIVATE: the noise came from a seed, so anyone who knows the seed can subtract it.");
  if (release.condition) found.push(`CONDITIONAL: ${release.condition}.`);
  if (release.encoded.some((e) => e.name === target && e.indicator)) {
    found.push(
      `${target} is 0 or 1, so this is a linear probability model. A coefficient is the change of the probability that ${target} is 1, if ` +
      "the feature is larger by one unit. Predictions can be below 0 or above 1. The errors do not have one variance, although the " +
      "intervals assume it, so intervals can be too narrow or too wide. docs/yes-no.md shows by how much, and explains logits.",
    );
  }
  const lost = coefficients.filter((c) => !c.identified).map((c) => c.name);
  if (lost.length) {
    found.push(
      `Not identified at this budget: ${lost.join(", ")}. The noise is too large to say anything about them, so ` +
      "their intervals are infinite. Use fewer features or a larger budget.",
    );
  }
  for (const [name, source] of unmarked(release, coefficients.map((c) => c.name))) {
    found.push(
      `${name} is filled in where a cell of ${source} is missing, which can bias its coefficient. Add ${source}[missing] to the ` +
      "features, which marks these rows.",
    );
  }
  for (const [name, value] of madeUp(release, target)) {
    found.push(
      `Missing cells of ${name} count as ${value}. If many are missing, this biases all coefficients, and the release does not say how ` +
      "many are.",
    );
  }
  const tested = coefficients.filter((c) => c.identified && c.interval === "fieller").map((c) => c.name);
  if (tested.length && intervals === "auto") {
    found.push(`Weakly identified: ${tested.join(", ")}. Their intervals contain all values that a test does not reject (Fieller).`);
  }
  for (const { name, degrees, restrictions } of joint) {
    if (degrees < restrictions) {
      found.push(
        `The joint test of ${name} is about ${degrees} of ${restrictions} combinations of its coefficients. The release says too little ` +
        "about the others.",
      );
    }
  }
  const known = (!release.evidence.countsPartly && release.rows) || Infinity;
  if (seen.rows < 0.98 * known && release.evidence.longRowsShrunk) {
    found.push("Rows longer than the row bound were clipped to it. The intervals do not include the bias that this can cause.");
  }
  if (release.evidence.shrinking) found.push(release.evidence.shrinking);
  return found;
}

// Of one row of cells: the prediction by `shrunk`, the debiased one, and intervals around the latter for the mean of such rows and for one.
function predict(release, plan, seen, known, params, estimates, good, confidence, cells) {
  const features = ownFeatures(release, plan, cells);
  const centre = dot(features, params);
  const { whole } = known.parts(features);
  const [row] = multiply([features], seen.toOwn);
  const [hidden] = weaklyIdentified(seen, known, [row]);
  const ends = (variance) => {
    const reach = hidden ? Infinity : quantile(confidence, seen.degrees) * Math.sqrt(Math.max(variance, 0));
    return [centre - reach, centre + reach];
  };
  return {
    prediction: dot(features, estimates), debiased: centre, mean: ends(whole), observation: ends(whole + good.residualVariance),
  };
}
