// Which columns of a release a regression uses, and how its coefficients get back to the columns' own units. As
// dpgram.regression.design, for the regressions that can be chosen by clicking: whole columns, and one column as target.

import { identity, transpose, zeros } from "./linalg.js";

export const INTERCEPT = "(intercept)";

// A regression that has no meaning, in words for the reader.
export class ModelError extends Error {}

// What a reader is told of a failure.
export const failed = (problem, what) =>
  (problem instanceof ModelError ? problem.message : `${what} could not be computed here (${problem.message}). Use Python instead.`);

// The declared columns with an indicator whose cells decide those of an encoded column, unless it is an indicator itself.
const filledFrom = (release, e) => (e.absent ? [] : release.encoded.filter((one) => one.absent && e.sources.includes(one.column)).map((one) => one.column));

// Places in the matrix that a target may have: every column but the intercept, and but numbers that are made up where a cell is missing.
export const targets = (release) =>
  [...release.encoded.keys()].filter((j) => release.encoded[j].column !== null && !filledFrom(release, release.encoded[j]).length);

// Derived columns among the names of coefficients with filled cells that no other of them marks, and the columns they are missing in.
export const unmarked = (release, names) =>
  names.flatMap((name) =>
    release.encoded
      .filter((e) => e.name === name)
      .flatMap((e) => filledFrom(release, e))
      .filter((source) => source !== name && !names.includes(`${source}[missing]`))
      .map((source) => [name, source]),
  );

// The declared columns that decide the target, and whose missing cells count as a value that nothing marks; and that value in words.
export const madeUp = (release, target) => {
  const e = release.encoded.find((one) => one.name === target);
  return release.declared.filter((c) => c.made_up && e && !e.absent && e.sources.includes(c.name)).map((c) => [c.name, c.made_up]);
};

// Columns, declared and derived, in the order of the matrix.
export const columnsOf = (release) => [...new Set(release.encoded.map((e) => e.column).filter((name) => name !== null))];

export const placesOf = (release, column) =>
  [...release.encoded.keys()].filter((j) => release.encoded[j].column === column);

// What a column is to a target: "target" where it holds it, "same cells" where either is computed from the other's, or "free".
export function relation(release, target, column) {
  const own = release.encoded[target];
  if (own.column === column) return "target";
  const sources = new Set(own.sources);
  const shared = placesOf(release, column).some((j) => release.encoded[j].sources.some((name) => sources.has(name)));
  return shared ? "same cells" : "free";
}

// What `dpgram regress` uses when no features are named.
export const defaultFeatures = (release, target) =>
  columnsOf(release).filter((column) => relation(release, target, column) === "free");

export const makeDesign = (release, target, columns, intercept) =>
  designOf(release, target, columns.flatMap((column) => placesOf(release, column)), intercept);

// The regression of one column of the matrix on others, by their places.
export function designOf(release, target, places, intercept) {
  const d = release.encoded.length;
  const constant = intercept && release.intercept;
  if (!places.length && !constant) throw new ModelError("The model has no feature and no intercept. Choose a feature, or keep the intercept.");
  const label = release.encoded[target];
  const parts = places.map((j) => release.encoded[j]);
  const unit = identity(d);
  const unshifted = (j) => {
    const { centre, half } = release.encoded[j];
    const weights = Float64Array.from(unit[j]);
    if (centre) weights[0] += centre / half; // each scaled column gets its shift back
    return weights;
  };
  const p = places.length + (constant ? 1 : 0);
  const toOwn = zeros(p, p);
  const offset = new Float64Array(p);
  const shift = constant ? 1 : 0;
  parts.forEach((part, k) => (toOwn[k + shift][k + shift] = label.half / part.half));
  if (constant) {
    toOwn[0][0] = label.half;
    parts.forEach((part, k) => (toOwn[0][k + 1] = (-label.half * part.centre) / part.half));
    offset[0] = label.centre;
  }
  const regressors = constant ? [unit[0], ...places.map((j) => unit[j])] : places.map(unshifted);
  const groups = new Map();
  parts.forEach((part, k) => groups.set(part.column, [...(groups.get(part.column) ?? []), k + shift]));
  return {
    names: [...(constant ? [INTERCEPT] : []), ...parts.map((part) => part.name)],
    places: [...(constant ? [0] : []), ...places],
    constant,
    target: label.name,
    regressors: transpose(regressors), // (d, p)
    label: constant ? unit[target] : unshifted(target),
    toOwn,
    offset,
    groups: [...groups.entries()],
    labelUnit: label.half,
    indicators: [...(constant ? [false] : []), ...parts.map((part) => part.indicator)], // which regressors are 0/1 columns
  };
}
