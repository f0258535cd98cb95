// One regression from a release: what `dpgram regress --json` prints, and predictions. As dpgram.analysis.fit.

import { makeChannel } from "./channel.js";
import { INTERCEPT, makeDesign, unmarked } from "./design.js";
import { ownFeatures } from "./encode.js";
import { debiased, shrunk } from "./estimate.js";
import { goodness } from "./goodness.js";
import { automatic, fieller, uncertainty, wald, weakCombinations } from "./intervals.js";
import { multiply, dot } from "./linalg.js";
import { profile } from "./pivot.js";
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
      pValue: method === "fieller" ? testedP(seen, i, known.byTable, made[i], confidence) : pValue(z ** 2, 1, seen.degrees),
      lower,
      upper,
      identified: Number.isFinite(lower) && Number.isFinite(upper),
      interval: method,
    };
  });
  const good = goodness(release, plan, confidence);
  return {
    target: plan.target,
    confidence,
    intervals,
    coefficients,
    ...good,
    jointTests: jointTests(seen, plan, known.byTable),
    countedRows: seen.rows,
    designEffect: seen.designEffect,
    effectiveRows: seen.rows / seen.designEffect,
    degrees: seen.degrees,
    notes: notes(release, plan.target, coefficients, intervals, seen),
    predict: (cells) => predict(release, plan, seen, known, params, estimates, good, confidence, cells),
  };
}

// The test behind Fieller's interval, so that the two say the same; where its set has a gap around zero, the interval spans it.
function testedP(seen, place, byTable, { lower, upper }, confidence) {
  const p = pValue(profile(seen, [seen.toOwn[place]], [-seen.base[place]], byTable), 1, seen.degrees);
  return lower <= 0 && upper >= 0 ? Math.max(p, 1 - confidence) : p;
}

function jointTests(seen, plan, byTable) {
  const test = (name, places) => {
    const values = places.map((j) => -seen.base[j]);
    const statistic = profile(seen, places.map((j) => seen.toOwn[j]), values, byTable);
    return { name, statistic, degrees: places.length, pValue: pValue(statistic, places.length, seen.degrees) };
  };
  const found = plan.groups.filter(([, places]) => places.length > 1).map(([name, places]) => test(name, places));
  const slopes = [...plan.names.keys()].filter((j) => plan.names[j] !== INTERCEPT);
  if (slopes.length > 1 && plan.groups.length > 1) found.push(test("all features", slopes));
  return found;
}

// Intervals that were simulated in Python when the page was made, if it has them for this very model.
export function findBootstrap(release, names, target, confidence) {
  return (release.bootstrap ?? []).find(
    (one) => one.target === target && one.confidence === confidence && one.names.join("\n") === names.join("\n"),
  );
}

function storedBootstrap(release, plan, confidence) {
  const one = findBootstrap(release, plan.names, plan.target, confidence);
  return one.lower.map((lower, i) => ({ lower, upper: one.upper[i], method: "bootstrap" }));
}

function notes(release, target, coefficients, intervals, seen) {
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
  const tested = coefficients.filter((c) => c.identified && c.interval === "fieller").map((c) => c.name);
  if (tested.length && intervals === "auto") {
    found.push(`Weakly identified: ${tested.join(", ")}. Their intervals contain all values that a test does not reject (Fieller).`);
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
  const [hidden] = weakCombinations(seen, [row]);
  const ends = (variance) => {
    const reach = hidden ? Infinity : quantile(confidence, seen.degrees) * Math.sqrt(Math.max(variance, 0));
    return [centre - reach, centre + reach];
  };
  return {
    prediction: dot(features, estimates), debiased: centre, mean: ends(whole), observation: ends(whole + good.residualVariance),
  };
}
