// Reads { data, cases } from standard input, fits each case with the modules in web/, and prints what was found as JSON.

import { readFileSync } from "node:fs";
import { steps } from "../../web/controls.js";
import { fit } from "../../web/fit.js";
import { moments } from "../../web/moments.js";
import { partials } from "../../web/partial.js";
import { readRelease } from "../../web/release.js";

const { data, cases, pairs = null } = JSON.parse(readFileSync(0, "utf-8"));
const release = readRelease(data);
const place = (name) => release.encoded.findIndex((e) => e.name === name);
const fits = cases.map(({ target, features, options, cells, contrasts = [], followed = [] }) => {
  try {
    const found = fit(release, place(target), features, options);
    return {
      ...found, predictions: cells.map((one) => found.predict(one)), contrasts: contrasts.map((one) => found.contrast(one)),
      steps: followed.map((one) => steps(release, place(target), features, place(one), options)),
    };
  } catch (problem) {
    return { error: problem.message };
  }
});
const partial = pairs === null ? null : partials(release, pairs.map(place), 0.9);
const plain = (_, value) => (value instanceof Float64Array ? [...value] : Number.isFinite(value) || typeof value !== "number" ? value : `${value}`);
process.stdout.write(JSON.stringify({ fits, moments: moments(release), partial, spectrum: release.evidence.spectrum }, plain));
