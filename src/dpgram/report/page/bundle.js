// Made from web/ by tools/bundle_page.py: change the modules there, not this file.
"use strict";

const module_linalg = (() => {
// Dense linear algebra on small matrices. A matrix is an array of rows, each a Float64Array; nothing is changed in place
// unless a name says so.

const zeros = (rows, columns) => Array.from({ length: rows }, () => new Float64Array(columns));

function identity(n) {
  const found = zeros(n, n);
  for (let i = 0; i < n; i++) found[i][i] = 1;
  return found;
}

const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

const norm = (a) => Math.sqrt(dot(a, a));

const apply = (matrix, vector) => Float64Array.from(matrix, (row) => dot(row, vector));

function transpose(a) {
  const found = zeros(a.length ? a[0].length : 0, a.length);
  a.forEach((row, i) => row.forEach((value, j) => (found[j][i] = value)));
  return found;
}

function multiply(a, b) {
  const width = b.length ? b[0].length : 0;
  return a.map((row) => {
    const out = new Float64Array(width);
    for (let k = 0; k < row.length; k++) {
      const factor = row[k];
      if (factor !== 0) for (let j = 0; j < width; j++) out[j] += factor * b[k][j];
    }
    return out;
  });
}

const addToDiagonal = (a, value) => a.map((row, i) => row.map((x, j) => (i === j ? x + value : x)));

// x with a x = b for a matrix b of right-hand sides, by Gauss with partial pivoting. Null where a is exactly singular.
function solveMatrix(a, b) {
  const n = a.length;
  const left = a.map((row) => Float64Array.from(row));
  const right = b.map((row) => Float64Array.from(row));
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(left[i][k]) > Math.abs(left[pivot][k])) pivot = i;
    if (left[pivot][k] === 0) return null;
    [left[k], left[pivot]] = [left[pivot], left[k]];
    [right[k], right[pivot]] = [right[pivot], right[k]];
    for (let i = k + 1; i < n; i++) {
      const factor = left[i][k] / left[k][k];
      if (factor === 0) continue;
      for (let j = k; j < n; j++) left[i][j] -= factor * left[k][j];
      for (let j = 0; j < right[i].length; j++) right[i][j] -= factor * right[k][j];
    }
  }
  for (let k = n - 1; k >= 0; k--) {
    for (let i = k + 1; i < n; i++) {
      const factor = left[k][i];
      if (factor !== 0) for (let j = 0; j < right[k].length; j++) right[k][j] -= factor * right[i][j];
    }
    for (let j = 0; j < right[k].length; j++) right[k][j] /= left[k][k];
  }
  return right;
}

function solve(a, b) {
  const found = solveMatrix(a, Array.from(b, (value) => Float64Array.of(value)));
  return found && Float64Array.from(found, (row) => row[0]);
}

const inverse = (a) => solveMatrix(a, identity(a.length));

// { q, r } with a = q r, q (rows, columns) orthonormal, r upper triangular with a diagonal that is not negative. Householder. When `full`, q has
// as many columns as rows: the further ones are orthogonal to all columns of a.
function qr(a, full = false) {
  const rows = a.length;
  const columns = a[0].length;
  const work = a.map((row) => Float64Array.from(row));
  const mirrors = [];
  for (let k = 0; k < columns; k++) {
    const mirror = new Float64Array(rows);
    for (let i = k; i < rows; i++) mirror[i] = work[i][k];
    const size = norm(mirror);
    mirror[k] += mirror[k] > 0 ? size : -size;
    const square = dot(mirror, mirror);
    mirrors.push([mirror, square]);
    if (square > 0) reflect(work, mirror, square, k, columns);
  }
  const width = full ? rows : columns;
  const q = zeros(rows, width);
  for (let k = 0; k < width; k++) q[k][k] = 1;
  for (let k = columns - 1; k >= 0; k--) if (mirrors[k][1] > 0) reflect(q, ...mirrors[k], 0, width);
  const r = zeros(columns, columns);
  for (let i = 0; i < columns; i++) {
    const sign = work[i][i] < 0 ? -1 : 1;
    for (let j = i; j < columns; j++) r[i][j] = sign * work[i][j];
    for (let j = 0; j < rows; j++) q[j][i] *= sign;
  }
  return { q, r };
}

// The columns from..to of `target`, mirrored; row by row, as the matrix lies in memory.
function reflect(target, mirror, square, from, to) {
  const along = new Float64Array(to);
  for (let i = 0; i < mirror.length; i++) {
    if (mirror[i] !== 0) for (let j = from; j < to; j++) along[j] += mirror[i] * target[i][j];
  }
  for (let i = 0; i < mirror.length; i++) {
    const factor = (2 * mirror[i]) / square;
    if (factor !== 0) for (let j = from; j < to; j++) target[i][j] -= factor * along[j];
  }
}
return { zeros, identity, dot, norm, apply, transpose, multiply, addToDiagonal, solveMatrix, solve, inverse, qr };
})();

const module_design = (() => {
// Which columns of a release a regression uses, and how its coefficients get back to the columns' own units. As
// dpgram.regression.design, for the regressions that can be chosen by clicking: whole columns, and one column as target.

const { identity, transpose, zeros } = module_linalg;

const INTERCEPT = "(intercept)";

// A regression that has no meaning, in words for the reader.
class ModelError extends Error {}

// What a reader is told of a failure.
const failed = (problem, what) =>
  (problem instanceof ModelError ? problem.message : `${what} could not be computed here (${problem.message}). Use Python instead.`);

// The declared columns with an indicator whose cells decide those of an encoded column, unless it is an indicator itself.
const filledFrom = (release, e) => (e.absent ? [] : release.encoded.filter((one) => one.absent && e.sources.includes(one.column)).map((one) => one.column));

// Places in the matrix that a target may have: every column but the intercept, and but numbers that are made up where a cell is missing.
const targets = (release) =>
  [...release.encoded.keys()].filter((j) => release.encoded[j].column !== null && !filledFrom(release, release.encoded[j]).length);

// Derived columns among the names of coefficients with filled cells that no other of them marks, and the columns they are missing in.
const unmarked = (release, names) =>
  names.flatMap((name) =>
    release.encoded
      .filter((e) => e.name === name)
      .flatMap((e) => filledFrom(release, e))
      .filter((source) => source !== name && !names.includes(`${source}[missing]`))
      .map((source) => [name, source]),
  );

// The declared columns that decide the target, and whose missing cells count as a value that nothing marks; and that value in words.
const madeUp = (release, target) => {
  const e = release.encoded.find((one) => one.name === target);
  return release.declared.filter((c) => c.made_up && e && !e.absent && e.sources.includes(c.name)).map((c) => [c.name, c.made_up]);
};

// Columns, declared and derived, in the order of the matrix.
const columnsOf = (release) => [...new Set(release.encoded.map((e) => e.column).filter((name) => name !== null))];

const placesOf = (release, column) =>
  [...release.encoded.keys()].filter((j) => release.encoded[j].column === column);

// What a column is to a target: "target" where it holds it, "same cells" where either is computed from the other's, or "free".
function relation(release, target, column) {
  const own = release.encoded[target];
  if (own.column === column) return "target";
  const sources = new Set(own.sources);
  const shared = placesOf(release, column).some((j) => release.encoded[j].sources.some((name) => sources.has(name)));
  return shared ? "same cells" : "free";
}

// What `dpgram regress` uses when no features are named.
const defaultFeatures = (release, target) =>
  columnsOf(release).filter((column) => relation(release, target, column) === "free");

const makeDesign = (release, target, columns, intercept) =>
  designOf(release, target, columns.flatMap((column) => placesOf(release, column)), intercept);

// The regression of one column of the matrix on others, by their places.
function designOf(release, target, places, intercept) {
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
return { INTERCEPT, ModelError, failed, targets, unmarked, madeUp, columnsOf, placesOf, relation, defaultFeatures, makeDesign, designOf };
})();

const module_dom = (() => {
// Elements from plain descriptions. Text is always set as text, never parsed: a column may be named like a tag.

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes (`on...` ones are listeners) and children, which are elements or text.
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

// The same for drawings.
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const byId = (id) => document.getElementById(id);

// A labelled drop-down; `choices` are [value, words] pairs.
function dropDown(label, choices, value, change, attributes = {}) {
  const options = choices.map(([one, words]) => make("option", { value: one, selected: one === value, title: words }, words));
  const box = make("select", { ...attributes, onchange: (event) => change(event.target.value) }, options);
  box.value = value;
  return make("label", { class: "field" }, make("span", {}, label), box);
}

// Part of a name, for places where the whole does not fit: its start and its end, because levels of a category differ at the end. The whole
// belongs in a title.
function shorten(name, length) {
  const letters = Array.from(name);
  if (letters.length <= length) return name;
  const end = Math.max(3, Math.floor(length / 4));
  return `${letters.slice(0, length - 1 - end).join("")}\u2026${letters.slice(-end).join("")}`;
}
return { make, draw, byId, dropDown, shorten };
})();

const module_chooser = (() => {
// What to explain, by what, and how sure to be. Redraws itself when the target changes; calls `changed` after every choice.

const { columnsOf, defaultFeatures, placesOf, relation, targets } = module_design;
const { dropDown, make } = module_dom;

const CONFIDENCES = [0.5, 0.8, 0.9, 0.95, 0.99];
const INTERVALS = [
  ["auto", "auto: Wald, Fieller where weak"],
  ["wald", "Wald"],
  ["fieller", "Fieller"],
];

const WIDE = 150; // coefficients, beyond which a fit takes seconds
const FEW = 20;

// The model that `dpgram regress` would fit, or a small one where that would keep the reader waiting.
function startChoice(release) {
  const numeric = targets(release).filter((j) => release.declared.some((c) => c.name === release.encoded[j].name && c.kind === "numeric"));
  const target = numeric[0] ?? targets(release)[0];
  const usual = defaultFeatures(release, target);
  const features = release.encoded.length > WIDE ? usual.slice(0, FEW) : usual;
  return {
    target, features: new Set(features), confidence: 0.95, intervals: "auto", intercept: release.intercept, order: "declared",
    scale: "range",
  };
}

function chooser(release, choice, changed) {
  const root = make("form", { class: "chooser", "aria-label": "Choose a model", onsubmit: (event) => event.preventDefault() });
  const list = make("div", { class: "features", role: "group", "aria-label": "Features" });
  const count = make("p", { class: "small", id: "count" });
  const boxes = new Map();

  const tally = () => {
    const places = [...choice.features].reduce((total, column) => total + placesOf(release, column).length, 0);
    count.textContent = `${choice.features.size} of ${columnsOf(release).length} columns, ${places} coefficients`;
  };
  const set = (columns) => {
    choice.features = new Set(columns);
    boxes.forEach((box, column) => (box.checked = choice.features.has(column)));
    tally();
    changed();
  };
  const relist = () => {
    boxes.clear();
    list.replaceChildren(...columnsOf(release).map((column) => {
      const how = relation(release, choice.target, column);
      const box = make("input", {
        type: "checkbox", checked: choice.features.has(column), disabled: how === "target",
        onchange: (event) => {
          if (event.target.checked) choice.features.add(column);
          else choice.features.delete(column);
          tally();
          changed();
        },
      });
      boxes.set(column, box);
      const words = { target: "holds the target", "same cells": "shares the target's cells", free: null }[how];
      const levels = placesOf(release, column).length;
      const mark = words ?? (levels > 1 ? `${levels} levels` : null);
      return make(
        "label", { class: "feature", title: words ? `${column}: ${words}` : column }, box,
        make("span", { class: "name" }, column), mark ? make("span", { class: "mark" }, mark) : null,
      );
    }));
    tally();
  };
  const search = make("input", {
    type: "search", placeholder: "find a column", "aria-label": "Find a column among the features",
    oninput: (event) => {
      const wanted = event.target.value.toLowerCase();
      boxes.forEach((box, column) => (box.parentElement.hidden = !column.toLowerCase().includes(wanted)));
    },
  });
  const shown = () => [...boxes].filter(([, box]) => !box.parentElement.hidden && !box.disabled).map(([column]) => column);
  const named = targets(release).map((j) => [String(j), release.encoded[j].name]);
  const retarget = (value) => {
    choice.target = Number(value);
    choice.features = new Set(defaultFeatures(release, choice.target));
    search.value = "";
    relist();
    changed();
  };
  const methods = release.bootstrap.length ? [...INTERVALS, ["bootstrap", "bootstrap, simulated when this page was made"]] : INTERVALS;
  const usual = () => defaultFeatures(release, choice.target);
  root.append(
    dropDown("Target", named, String(choice.target), retarget, { id: "target" }),
    make(
      "fieldset", {}, make("legend", {}, "Features"),
      make(
        "div", { class: "tools" }, search,
        make("button", { type: "button", id: "usual", onclick: () => set(usual()), title: "All columns that do not share a source column with the target" }, "All"),
        make("button", { type: "button", id: "none", onclick: () => set([]) }, "None"),
        make("button", { type: "button", id: "only", onclick: () => set(shown()), title: "The columns in the list below" }, "Those found"),
      ),
      list, count,
    ),
    make(
      "div", { class: "row" },
      dropDown("Confidence", CONFIDENCES.map((c) => [String(c), `${100 * c} %`]), String(choice.confidence), (value) => {
        choice.confidence = Number(value);
        changed();
      }, { id: "confidence" }),
      dropDown("Intervals", methods, choice.intervals, (value) => {
        choice.intervals = value;
        changed();
      }, { id: "intervals" }),
    ),
    release.intercept
      ? make(
        "label", { class: "feature" },
        make("input", {
          type: "checkbox", id: "intercept", checked: choice.intercept,
          onchange: (event) => {
            choice.intercept = event.target.checked;
            changed();
          },
        }),
        make("span", {}, "with an intercept"),
      )
      : make("p", { class: "small" }, "The release has no intercept column, so models go through the origin."),
  );
  relist();
  return root;
}
return { startChoice, chooser };
})();

const module_format = (() => {
// Numbers as a reader wants them: five digits, no more zeros than needed.

// As Python's "%.5g".
function number(value, digits = 5) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "-\u221e";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  const text = size < -4 || size >= digits ? value.toExponential(digits - 1) : value.toPrecision(digits);
  const [mantissa, exponent] = text.split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return (exponent ? `${short}e${exponent}` : short).replace("e+", "e");
}

const probability = (value) => (value < 0.001 ? "<0.001" : value.toFixed(3));

const interval = ([low, high], digits = 5) =>
  Number.isFinite(low) && Number.isFinite(high) ? `[${number(low, digits)}, ${number(high, digits)}]` : "not identified at this budget";

const percent = (share) => `${number(100 * share, 4)} %`;

// Round numbers that divide an axis, about `count` of them.
function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => raw <= factor * unit * 1.0001);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step || 0); // no minus zero
  return found;
}

// A date given as days since 1970, as an input element writes it.
const dateText = (days, withTime) => new Date(Math.round(days * 86400) * 1000).toISOString().slice(0, withTime ? 16 : 10);

const daysOf = (text) => Date.parse(text.includes("T") ? `${text}Z` : `${text}T00:00Z`) / 86400000;
return { number, probability, interval, percent, ticks, dateText, daysOf };
})();

const module_coefficients = (() => {
// The fitted model as facts, as a picture of coefficients with intervals, and as a table.

const { dropDown, draw, make, shorten } = module_dom;
const { interval, number, probability, ticks } = module_format;
const { INTERCEPT } = module_design;

const NAMED = 30; // letters of a name
const LONG = 260; // letters of a note that are shown before the reader asks for all of them
const LOST = "not identified at this budget";

const whole = (value) => Math.round(value).toLocaleString("en");

// How many rows counted, as far as the release tells.
function rowsThatCounted({ counted, countsAtLeast }) {
  if (countsAtLeast) return `at least about ${whole(counted.rows)}`;
  const rows = whole(counted.rows);
  return counted.rowsSd > 0 ? `about ${rows === "1" ? "none" : rows} (s.e. ${whole(counted.rowsSd)})` : rows; // no estimate is below one
}

function factList(release, found) {
  const ends = found.residualVarianceInterval.map((v) => (Number.isFinite(v) ? Math.sqrt(v) : v));
  const high = Number.isFinite(ends[1]) ? number(ends[1], 4) : "\u221e";
  const squared = found.rSquared === null
    ? "not identified"
    : `${found.rSquared.toFixed(3)} [${found.rSquaredInterval.map((v) => v.toFixed(3)).join(", ")}]`;
  const lost = found.coefficients.filter((c) => !c.identified).length;
  const facts = [
    ["target", found.target, "target"],
    ["R\u00b2", squared, "r-squared"],
    ["residual sd", `${number(Math.sqrt(found.residualVariance), 4)} [${number(ends[0], 4)}, ${high}]`, "residual-sd"],
    ["coefficients", lost ? `${found.coefficients.length}, of which ${lost} ${LOST}` : String(found.coefficients.length), "counted"],
    ["rows that counted", rowsThatCounted(release.evidence), "counted-rows"],
  ];
  if (found.designEffect !== 1) {
    facts.push(["design effect, at most", number(found.designEffect, 4), "design-effect"]);
    facts.push(["effective rows", whole(found.effectiveRows), "effective-rows"]);
  }
  if (found.degrees !== Infinity) facts.push(["degrees of freedom of the noise", number(found.degrees), "degrees"]);
  return make(
    "dl", { class: "badges" },
    facts.map(([name, value, id]) => make("div", {}, make("dt", {}, name), make("dd", { "data-fact": id, title: value }, shorten(value, 60)))),
  );
}

// In which order, and in which unit the picture has them.
function ordered(found, order) {
  const slopes = [...found.coefficients];
  if (order === "size") slopes.sort((a, b) => Number(b.identified) - Number(a.identified) || Math.abs(b.z) - Math.abs(a.z));
  return slopes;
}

function viewChoices(choice, redraw) {
  const set = (name) => (value) => {
    choice[name] = value;
    redraw();
  };
  return make(
    "div", { class: "row tools" },
    dropDown("Picture in", [["range", "effect of the column's whole range"], ["own", "the columns' own units"]], choice.scale, set("scale"), { id: "scale" }),
    dropDown("Order", [["declared", "as declared"], ["size", "by size divided by standard error"]], choice.order, set("order"), { id: "order" }),
  );
}

function picture(release, found, choice) {
  const shown = ordered(found, choice.order).filter((c) => c.name !== INTERCEPT);
  const factor = (c) => (choice.scale === "own" ? 1 : spanOf(release.encoded[c.place]));
  if (!shown.length) return make("p", { class: "small" }, "The intercept alone: see the table.");
  const unit = choice.scale === "own" ? "coefficient, in own units" : `change of ${found.target} over the whole declared range of a column (or from 0 to 1)`;
  return bars(shown, factor, legend(found), unit);
}

// Coefficients with their intervals below each other, each multiplied by its factor. Percentages instead of pixels: the picture follows the
// width of the page, on a phone and on paper. Where the axis need not have its zero it shows differences between the lines better.
function bars(shown, factor, caption, unit, withZero = true) {
  const known = shown.filter((c) => c.identified);
  const points = (c) => [c.coefficient, c.lower, c.upper, ...(c.shrunk === undefined ? [] : [c.shrunk])];
  const [low, high] = domain(known.map((c) => points(c).map((v) => v * factor(c))), withZero);
  const at = (value) => (100 * (value - low)) / (high - low);
  const place = (value) => `${Math.min(Math.max(at(value), 0), 100).toFixed(3)}%`;
  const rows = shown.map((c) => {
    const by = factor(c);
    const shrunk = c.shrunk === undefined ? "" : `; shrunk ${number(c.shrunk)}`;
    const words = c.identified ? `${c.name}: ${number(c.coefficient)}, ${interval([c.lower, c.upper])}${shrunk}` : `${c.name}: ${LOST}`;
    const track = draw("svg", { class: "track", role: "img", "aria-label": words }, draw("title", {}, words));
    const zero = place(0);
    if (low <= 0 && high >= 0) track.append(draw("line", { class: "zero", x1: zero, x2: zero, y1: "0", y2: "100%" }));
    if (c.identified) {
      const sure = c.lower > 0 || c.upper < 0;
      const [a, b] = [c.lower * by, c.upper * by];
      track.append(
        draw("line", { class: sure ? "reach sure" : "reach", x1: place(a), x2: place(b), y1: "50%", y2: "50%" }),
        ...[a, b].filter((end) => at(end) >= 0 && at(end) <= 100).map((end) =>
          draw("line", { class: sure ? "reach sure" : "reach", x1: place(end), x2: place(end), y1: "28%", y2: "72%" })),
        ...[a, b].filter((end) => at(end) < 0 || at(end) > 100).map((end) => draw(
          "text", { class: "beyond", x: at(end) < 0 ? "0%" : "100%", y: "50%", dy: "0.35em", "text-anchor": at(end) < 0 ? "start" : "end" },
          at(end) < 0 ? "\u25c0" : "\u25b6",
        )),
      );
      if (shrunk) track.append(draw("line", { class: "shrunk", x1: place(c.shrunk * by), x2: place(c.shrunk * by), y1: "15%", y2: "85%" }));
      if (at(c.coefficient * by) >= 0 && at(c.coefficient * by) <= 100) {
        track.append(draw("circle", { class: sure ? "point sure" : "point", cx: place(c.coefficient * by), cy: "50%", r: "4" }));
      }
    } else {
      track.append(
        draw("line", { class: "lost", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
        draw("text", { class: "lost", x: "99%", y: "50%", dy: "0.35em", "text-anchor": "end" }, "not identified"),
      );
    }
    return make("li", { class: "bar" }, make("span", { class: "name", title: c.name }, shorten(c.name, NAMED)), track);
  });
  const axis = draw("svg", { class: "track axis", "aria-hidden": "true" });
  if (known.length) ticks(low, high, 4).forEach((value) => axis.append(
    draw("line", { class: "tick", x1: place(value), x2: place(value), y1: "0", y2: "5" }),
    draw("text", { x: place(value), y: "18", "text-anchor": at(value) < 8 ? "start" : at(value) > 92 ? "end" : "middle" }, number(value, 3)),
  ));
  return make(
    "figure", { class: "coefficients" },
    make("figcaption", {}, caption),
    make("ol", { class: "bars" }, rows, make("li", { class: "bar", "aria-hidden": "true" }, make("span", { class: "name" }, ""), axis)),
    make("p", { class: "small axis-words", title: unit }, unit),
  );
}

const mark = (kind, words) => make("span", { class: "key" }, make("i", { class: kind }), words);

// What filled and hollow dots mean.
const surely = (found) =>
  make("span", { class: "legend" }, mark("dot sure", `debiased, ${100 * found.confidence} % interval without zero`), mark("dot", "interval with zero"));

const legend = (found) => [surely(found), mark("dash", "shrunk, for prediction")];

// What a coefficient is multiplied by to show what the whole range of its column does.
const spanOf = (e) => (e.centre || e.half !== 1 ? 2 * e.half : 1);

// An axis that shows most intervals whole, with zero on it, and every coefficient that is not zero for sure; what is far wider is cut off,
// with an arrow. Without zero, it is about the median of the coefficients, and shows all of them.
function domain(sets, withZero) {
  if (!sets.length) return [-1, 1];
  if (!withZero) {
    const middle = sets.map(([b]) => b).sort((a, b) => a - b)[Math.floor(sets.length / 2)];
    return axisOf(sets.map((set) => set.map((value) => value - middle)), () => true).map((end) => end + middle);
  }
  return axisOf(sets, ([, low, high]) => low > 0 || high < 0);
}

function axisOf(sets, whole) {
  const sure = sets.filter(whole).map(([b]) => Math.abs(b));
  const ends = sets.map(([, low, high]) => Math.max(Math.abs(low), Math.abs(high))).sort((a, b) => a - b);
  const usual = ends[Math.floor(0.8 * (ends.length - 1))];
  const limit = Math.max(1.3 * usual, 1.2 * Math.max(0, ...sure)) || 1;
  const low = Math.max(Math.min(0, ...sets.map((set) => set[1])), -limit);
  const high = Math.min(Math.max(0, ...sets.map((set) => set[2])), limit);
  const room = 0.04 * (high - low || 1);
  return [low - room, high + room];
}

function coefficientTable(found, choice) {
  const tail = (1 - found.confidence) / 2;
  const clipped = found.coefficients.some((c) => c.seClipping > 0);
  const sources = ["sampling", "privacy", ...(clipped ? ["clipping"] : [])];
  const heads = ["", "coef", "std err", ...sources, "z", "P>|z|", `[${number(tail, 4)}`, `${number(1 - tail, 4)}]`, "shrunk", "interval by"];
  const rows = ordered(found, choice.order).map((c) => {
    const cells = c.identified
      ? [c.z === null ? "" : c.z.toFixed(2), probability(c.pValue), number(c.lower), number(c.upper)]
      : ["", "", "-\u221e", "\u221e"];
    const ends = c.identified ? c.interval : LOST;
    const errors = [c.se, c.seSampling, c.sePrivacy, ...(clipped ? [c.seClipping] : [])].map((value) => number(value));
    return make(
      "tr", { "data-name": c.name, class: c.identified ? null : "lost" },
      make("th", { scope: "row", title: c.name }, shorten(c.name, NAMED)),
      [number(c.coefficient), ...errors, ...cells, number(c.shrunk), ends].map((text, k) =>
        make("td", { "data-column": heads[k + 1] }, text)),
    );
  });
  const table = make(
    "table", { class: "numbers" }, make("caption", {}, `Regression of ${found.target}, in the columns' own units`),
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows),
  );
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of coefficients" }, table);
}

function testTable(found) {
  if (!found.jointTests.length) return null;
  const rows = found.jointTests.map((t) => make(
    "tr", {}, make("th", { scope: "row", title: t.name }, shorten(t.name, NAMED)),
    [number(t.statistic, 4), String(t.degrees), probability(t.pValue)].map((text) => make("td", {}, text)),
  ));
  const heads = ["joint test: all coefficients are zero", "chi\u00b2", "df", "P>chi\u00b2"];
  return make(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Joint tests" },
    make("table", { class: "numbers" }, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)),
  );
}

function noteList(found) {
  const words = [
    "coef: debiased coefficients, without the bias that the noise would cause. std err, z, P>|z| and the interval are about them. shrunk: coefficients with the smallest expected error. Predictions use them.",
    ...(found.intervals === "bootstrap" ? ["These intervals were simulated when this page was made. They are not computed again here."] : []),
    ...found.notes,
  ];
  const folded = (text) =>
    text.length <= LONG ? text : make("details", {}, make("summary", {}, `${text.slice(0, LONG - 40)} \u2026`), text);
  return make("ul", { class: "notes" }, words.map((text) => make("li", { class: /^(NOT|CONDITIONAL|Not)/.test(text) ? "strong" : null }, folded(text))));
}
return { NAMED, rowsThatCounted, factList, ordered, viewChoices, picture, bars, surely, coefficientTable, testTable, noteList };
})();

const module_eigen = (() => {
// Eigenvalues and eigenvectors of a symmetric matrix: Householder's reduction to a tridiagonal one, then the implicit QL method
// (Martin, Reinsch and Wilkinson 1968; Golub and Van Loan, chapter 8).

const { identity, norm, transpose } = module_linalg;

const MOST_SWEEPS = 60; // two or three are usual for each eigenvalue

// { values, vectors }: values from the smallest up, vectors[i][k] the i-th entry of the k-th eigenvector.
function eigenSymmetric(matrix) {
  const n = matrix.length;
  if (n === 0) return { values: new Float64Array(0), vectors: [] };
  const { diagonal, off, axes } = tridiagonal(matrix);
  implicitQL(diagonal, off, axes);
  const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[i] - diagonal[j]);
  return { values: Float64Array.from(order, (k) => diagonal[k]), vectors: transpose(order.map((k) => axes[k])) };
}

// The diagonal, the entries beside it (off[i] couples i and i + 1) and the axes, one in each row, in which the matrix has this form.
function tridiagonal(matrix) {
  const n = matrix.length;
  const a = matrix.map((row, i) => Float64Array.from(row, (_, j) => (i >= j ? matrix[i][j] : matrix[j][i]))); // the lower half counts
  const axes = identity(n);
  for (let k = 0; k < n - 2; k++) {
    const mirror = new Float64Array(n);
    for (let i = k + 1; i < n; i++) mirror[i] = a[i][k];
    const size = norm(mirror);
    if (size === 0) continue;
    mirror[k + 1] += mirror[k + 1] > 0 ? size : -size;
    let square = 0;
    for (let i = k + 1; i < n; i++) square += mirror[i] * mirror[i];
    if (!(square > 0)) continue;
    const moved = new Float64Array(n); // 2 a mirror / square
    for (let i = k; i < n; i++) {
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += a[i][j] * mirror[j];
      moved[i] = (2 * sum) / square;
    }
    let along = 0;
    for (let i = k + 1; i < n; i++) along += mirror[i] * moved[i];
    along /= square;
    for (let i = k; i < n; i++) moved[i] -= along * mirror[i];
    for (let i = k; i < n; i++) for (let j = k; j < n; j++) a[i][j] -= mirror[i] * moved[j] + moved[i] * mirror[j];
    const shadow = new Float64Array(n); // mirror' axes
    for (let j = k + 1; j < n; j++) for (let i = 0; i < n; i++) shadow[i] += mirror[j] * axes[j][i];
    for (let j = k + 1; j < n; j++) {
      const factor = (2 * mirror[j]) / square;
      for (let i = 0; i < n; i++) axes[j][i] -= factor * shadow[i];
    }
  }
  return {
    diagonal: Float64Array.from(a, (row, i) => row[i]),
    off: Float64Array.from({ length: n }, (_, i) => (i + 1 < n ? a[i + 1][i] : 0)),
    axes,
  };
}

// An entry beside the diagonal is nothing where it adds nothing to its neighbours on the diagonal. Both of these may be rounding errors around
// zero, as of a projection: it is nothing, too, where it is a rounding error of the whole matrix.
function implicitQL(diagonal, off, axes) {
  const n = diagonal.length;
  const rounding = (Number.EPSILON / 2) * diagonal.reduce((most, value, i) => Math.max(most, Math.abs(value) + Math.abs(off[i])), 0);
  for (let start = 0; start < n; start++) {
    for (let sweep = 0; ; sweep++) {
      let end = start;
      for (; end + 1 < n; end++) {
        const size = Math.abs(diagonal[end]) + Math.abs(diagonal[end + 1]);
        if (size + Math.abs(off[end]) === size || Math.abs(off[end]) <= rounding) break;
      }
      if (end === start) break;
      if (sweep === MOST_SWEEPS) throw new Error("the eigenvalues of a matrix were not found");
      let g = (diagonal[start + 1] - diagonal[start]) / (2 * off[start]);
      let r = Math.hypot(g, 1);
      g = diagonal[end] - diagonal[start] + off[start] / (g + (g >= 0 ? r : -r));
      let sine = 1;
      let cosine = 1;
      let p = 0;
      let i = end - 1;
      for (; i >= start; i--) {
        let f = sine * off[i];
        const b = cosine * off[i];
        r = Math.hypot(f, g);
        off[i + 1] = r;
        if (r === 0) {
          diagonal[i + 1] -= p;
          off[end] = 0;
          break;
        }
        sine = f / r;
        cosine = g / r;
        g = diagonal[i + 1] - p;
        r = (diagonal[i] - g) * sine + 2 * cosine * b;
        p = sine * r;
        diagonal[i + 1] = g + p;
        g = cosine * r - b;
        const [first, second] = [axes[i], axes[i + 1]];
        for (let j = 0; j < n; j++) {
          f = second[j];
          second[j] = sine * first[j] + cosine * f;
          first[j] = cosine * first[j] - sine * f;
        }
      }
      if (r === 0 && i >= start) continue;
      diagonal[start] -= p;
      off[start] = g;
      off[end] = 0;
    }
  }
}
return { eigenSymmetric };
})();

const module_special = (() => {
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

function logGamma(a) {
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
function gammaAbove(a, x) {
  if (x <= 0) return 1;
  return x < a + 1 ? 1 - gammaSeries(a, x) : gammaDensity(a, x) / gammaFraction(a, x);
}

// ... and below x.
function gammaBelow(a, x) {
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
function betaBelow(a, b, x, y = 1 - x) {
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
function normalBelow(x) {
  const tail = 0.5 * gammaAbove(0.5, (x * x) / 2);
  return x < 0 ? tail : 1 - tail;
}

function logNormalBelow(x) {
  return x < 0 ? Math.log(0.5 * scaledErfc(-x / Math.SQRT2)) - (x * x) / 2 : Math.log1p(-0.5 * gammaAbove(0.5, (x * x) / 2));
}

// z with a share `tail` of the normal distribution above it, tail <= 1/2: the start of Abramowitz and Stegun 26.2.23, then Halley's steps.
function normalAbove(tail) {
  const t = Math.sqrt(-2 * Math.log(tail));
  let z = t - (2.515517 + t * (0.802853 + 0.010328 * t)) / (1 + t * (1.432788 + t * (0.189269 + 0.001308 * t)));
  for (let k = 0; k < 4; k++) {
    const step = (gammaAbove(0.5, (z * z) / 2) / 2 - tail) * Math.sqrt(2 * Math.PI) * Math.exp((z * z) / 2);
    z += step / (1 - (z * step) / 2);
  }
  return z;
}

// t with a share `tail` of Student's distribution above it.
function studentAbove(degrees, tail) {
  const z = normalAbove(tail);
  const expanded =
    z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2)
    + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * degrees ** 3);
  if (degrees > 1e5 || z === 0) return expanded;
  const above = (t) => 0.5 * betaBelow(degrees / 2, 0.5, degrees / (degrees + t * t), (t * t) / (degrees + t * t));
  return falling(above, tail, Math.max(expanded, z));
}

// x with a share `share` of chi-square below it, or above it, over its degrees of freedom.
const chiSquareBelow = (degrees, share) => chiSquareOver(degrees, share, false);
const chiSquareAbove = (degrees, share) => chiSquareOver(degrees, share, true);

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
function quantile(confidence, degrees) {
  const tail = (1 - confidence) / 2;
  return degrees === Infinity ? normalAbove(tail) : studentAbove(degrees, tail);
}

// The chance of a statistic so large: chi-square with `count` degrees of freedom, or F where the noise has few of its own.
function pValue(statistic, count, degrees) {
  const found = Math.max(statistic, 0);
  if (degrees === Infinity) return gammaAbove(count / 2, found / 2);
  const x = degrees / (degrees + found);
  return betaBelow(degrees / 2, count / 2, x, found / (degrees + found));
}
return { logGamma, gammaAbove, gammaBelow, betaBelow, normalBelow, logNormalBelow, normalAbove, studentAbove, chiSquareBelow, chiSquareAbove, quantile, pValue };
})();

const module_shrinkage = (() => {
// Eigenvalues seen through noise: what they were, how sure that is, and how to invert without bias. As dpgram.linalg.shrinkage.

const { logNormalBelow } = module_special;

const STEPS = 200; // of a search that takes about ten
const sum = (values) => values.reduce((total, value) => total + value, 0);

// For each eigenvector of G + N its mean in G, and the spread of G's other entries in its row (Bun, Bouchaud and Potters 2017).
function symmetricShrinkage(values, variance) {
  const p = values.length;
  const square = (Math.sqrt(variance) * p ** 0.25) / 2;
  const mean = new Float64Array(p);
  const spread = new Float64Array(p);
  for (let i = 0; i < p; i++) {
    let pull = 0;
    let density = 0;
    for (let j = 0; j < p; j++) {
      const apart = values[i] - values[j];
      const size = apart ** 2 + square ** 2;
      if (i === j || size === 0) continue;
      pull += apart / size;
      density += square / size;
    }
    mean[i] = values[i] - 2 * variance * pull;
    spread[i] = Math.max(variance * p - variance ** 2 * (pull ** 2 + density ** 2) - variance, 0);
  }
  return { mean, spread };
}

// The same for the eigenvalues of W(S, degrees) / degrees (Ledoit and Peche 2011).
function wishartShrinkage(values, degrees) {
  const p = values.length;
  return values.map((own, i) => {
    const width = (own * degrees ** -0.5 * p ** 0.25) / 2;
    let real = 0;
    let imaginary = 0;
    for (let j = 0; j < p; j++) {
      if (i === j) continue;
      const apart = values[j] - own; // 1 / (apart - i width)
      const size = apart ** 2 + width ** 2;
      real += apart / size;
      imaginary += width / size;
    }
    const first = 1 - p / degrees - (own * real) / degrees;
    const second = (own * imaginary) / degrees;
    return own / (first ** 2 + second ** 2);
  });
}

// Mean and mean square of normal variates given that they are positive.
function positiveMoments(means, sds) {
  const first = new Float64Array(means.length);
  const second = new Float64Array(means.length);
  means.forEach((mean, i) => {
    const sd = sds[i];
    if (!(sd > 0)) {
      first[i] = Math.max(mean, 0);
      second[i] = first[i] ** 2;
    } else if (mean / sd < -30) { // an exponential variate is left
      first[i] = -sd / (mean / sd);
      second[i] = 2 * first[i] ** 2;
    } else {
      const at = mean / sd;
      const hazard = Math.exp(-(at ** 2) / 2 - 0.5 * Math.log(2 * Math.PI) - logNormalBelow(at));
      first[i] = mean + sd * hazard;
      second[i] = mean ** 2 + sd ** 2 + sd * mean * hazard;
    }
  });
  return { first, second };
}

// x > 0 such that diag(1/x) is, to second order, an unbiased inverse of what `gain` was before noise:
// x_i = gain_i + spread weight_i (sum_j weight_j / x_j + weight_i / x_i).
function debiasedGain(gain, weight, spread) {
  if (spread === 0) return Float64Array.from(gain);
  const roots = (total) => {
    const x = gain.map((own, i) => {
      const a = own + spread * weight[i] * total;
      const q = 4 * spread * weight[i] ** 2;
      const root = Math.sqrt(a ** 2 + q);
      return (a > 0 ? a + root : q / (root - a)) / 2;
    });
    return { x, excess: sum(weight.map((w, i) => w / x[i])) - total };
  };
  let below = 0;
  let above = 1 / Math.sqrt(spread);
  while (roots(above).excess > 0) [below, above] = [above, 4 * above];
  let total = above;
  for (let step = 0; step < STEPS; step++) {
    const { x, excess } = roots(total);
    if (excess > 0) below = total;
    else above = total;
    const slope = 1 + sum(weight.map((w, i) => (spread * w ** 2) / (x[i] * (2 * x[i] - gain[i] - spread * w * total))));
    const move = excess / slope;
    if (Math.abs(move) <= 1e-14 * total) break;
    total = total + move > below && total + move < above ? total + move : (below + above) / 2;
  }
  return roots(total).x;
}
return { symmetricShrinkage, wishartShrinkage, positiveMoments, debiasedGain };
})();

const module_tails = (() => {
// What rows beyond the clip hold, as far as the outer matrices of the last round show it, and how far that moves a regression. As
// dpgram.evidence.tails, which has the mathematics; names are the same.

const { apply, dot, transpose } = module_linalg;

const AGREEMENT = Array.from({ length: 12 }, (_, k) => 0.005 ** (1 - k / 11)); // how far long rows may agree on a direction
const EXPECTED = AGREEMENT.map((rho) => rho ** -0.2); // prior weights of them
const RISING = AGREEMENT.map((rho) => rho ** -2); // the same of those that are as large as that of the scale before
const CAREFUL = AGREEMENT.map((rho) => 1 / rho); // further weights, for estimates
const FAINTEST = 1e-300; // of the largest likelihood: with many coefficients the others are no floats any more
const NEAR = 1.5; // standard deviations of the noise: how far from what was seen a mean square along the residual may be
const OPEN = [0.05, 0.1, 0.2, 0.4, 0.8]; // values of rho that intervals count with, one for all scales
const START = 0.4; // of a scale: about the squared length of its rows, which are between a fifth and four fifths of it
const BENT = 6; // how much more of what long rows do is expected along the fit than along any other direction
const WHOLE = 0.97; // of a row's square: at most so much lies in one direction
const ROUGH = 1; // relative standard deviation of what a power law says
const SURELY = 5; // standard deviations of a sum of squares that is noise alone
const [STEPS, STEADY] = [6, 0.05]; // of what is believed of outer matrices: at most so many; enough when a step changes less of the noise
const sum = (values) => values.reduce((total, value) => total + value, 0);

// A channel with as much of the outer matrices as is believed, and what the rest leaves open: the variance of what is observed, in the mean
// of all directions, of each coefficient how much more or less that is, and by how much more or less than others the sum of squared errors may
// lack of long rows. `tails` and `inner`, the matrix that `seen` is the channel of, are
// in the basis of the regression; channelOf(block, law) is the channel of any other. `directions` are the regressors less what the others
// explain of them; fitOf(residual) is the direction of what they say of the label.
function withTails(tails, inner, seen, channelOf, directions, fitOf) {
  const shape = inner.map((row) => row.map((value) => value / tails.size));
  let [believed, residual] = [null, null];
  for (let k = 0; k < STEPS; k++) {
    residual = residualOf(seen);
    const before = believed ?? tails.scales.map(() => 0);
    believed = judged(tails, shape, residual, believed);
    const { block, law } = joined(tails, shape, believed);
    seen = channelOf(block, law);
    if (Math.max(...tails.scales.map((scale, i) => Math.abs(believed[i] - before[i]) * scale)) * tails.sd <= STEADY * law.sd_off_diagonal) break;
  }
  return { ...seen, ...leftOpen(tails, shape, residual, believed, directions, fitOf(residualOf(seen))) };
}

// The view of all rounds together, with what outer matrices show beyond doubt at scales whose rows surely follow another line than `seen`,
// the channel of the last round. `tails` and `inner` are in its basis.
function togetherWith(together, tails, inner, seen) {
  const shape = inner.map((row) => row.map((value) => value / tails.size));
  const residual = residualOf(seen);
  const p = residual.length - 1;
  const counted = tails.clear.filter((matrix, k) => {
    const noise = tails.sd ** 2 + (tails.sizes[k] * tails.shapeSd) ** 2;
    const apart = apartFrom(tails, k, shape, residual);
    return matrix !== null && dot(apart, apart) > noise * (p + SURELY * Math.sqrt(2 * p));
  });
  const matrix = together.matrix.map((row, i) => row.map((value, j) => value + sum(counted.map((each) => each[i][j]))));
  return { ...together, matrix };
}

const residualOf = (seen) => Float64Array.of(...apply(seen.axes, seen.estimate).map((value) => -value), 1);

// Q'(M_k - c_k S) v, where v is the residual, of length one.
function apartFrom({ outer, sizes }, k, shape, residual) {
  const [there, within, length] = [apply(outer[k], residual), apply(shape, residual), Math.sqrt(dot(residual, residual))];
  return there.map((value, i) => (value - sizes[k] * within[i]) / length).slice(0, -1);
}

// The first matrix with the outer ones, as far as they are believed, and the law of the noise in that.
function joined({ first, outer, scales, sizes, sd, shapeSd }, shape, believed) {
  const weights = scales.map((scale, k) => scale * believed[k]);
  const guessed = sum(scales.map((scale, k) => scale * (1 - believed[k]) * sizes[k]));
  const entry = (value, i, j) => value + guessed * shape[i][j] + sum(outer.map((matrix, k) => weights[k] * matrix[i][j]));
  const block = first.map((row, i) => row.map((value, j) => entry(value, i, j)));
  const whole = Math.hypot(sd + guessed * shapeSd, ...weights.map((weight) => weight * sd));
  return { block, law: { name: "symmetric-gaussian", sd_off_diagonal: whole, sd_diagonal: Math.SQRT2 * whole, shift: 0 } };
}

const rowsOf = (trace, scale, scales) => Math.max(trace * (scale === scales[0] ? 9 : 3.5), 1);
const loglikelihood = (prior, sd, apart) => {
  const total = prior + sd ** 2;
  return -0.5 * (apart.length * Math.log(total) + dot(apart, apart) / total);
};

// The share to believe of each outer matrix. Shares that were `believed` before are gone away from by half.
function judged(tails, shape, residual, believed) {
  const { outer, scales, sizes, sd, dim } = tails;
  const length = dot(residual, residual);
  const seen = outer.map((matrix, k) => {
    const along = dot(residual, apply(matrix, residual)) / length;
    const near = Math.min(Math.max(sizes[k], along - NEAR * Math.SQRT2 * sd), along + NEAR * Math.SQRT2 * sd);
    const own = Math.min(Math.max(near, 0), dim * sizes[k]); // no direction has more than the trace
    const rows = rowsOf(dim * sizes[k], scales[k], scales);
    const prior = AGREEMENT.map((rho) => Math.min(rho ** 2 + 1 / rows, 1) * sizes[k] * own);
    const apart = apartFrom(tails, k, shape, residual);
    const likely = prior.map((value) => loglikelihood(value, sd, apart));
    const highest = Math.max(...likely);
    return { prior, chance: likely.map((value) => Math.max(Math.exp(value - highest), FAINTEST)) };
  });
  return rising(seen.map(({ chance }) => chance)).map((chance, k) => {
    const { prior } = seen[k];
    const share = average(prior.map((value) => value / (value + sd ** 2)), chance.map((value, i) => value * CAREFUL[i]));
    return believed === null ? share : (share + believed[k]) / 2;
  });
}

// What is left open by what is not `believed`.
function leftOpen(tails, shape, residual, believed, directions, fit) {
  const { outer, scales, usual, sd, dim } = tails;
  const length = dot(residual, residual);
  const noise = 2 * sd ** 2;
  const weights = scales.map((scale, k) => scale * (1 - believed[k]));
  const along = (direction) => {
    const vector = Float64Array.from(residual, (_, i) => direction[i] ?? 0);
    const expected = expectedAlong(tails, vector);
    return outer.map((matrix, k) => withSeen(expected[k], dot(vector, apply(matrix, vector)), noise));
  };
  const unit = residual.map((value) => value / Math.sqrt(length));
  const own = along(unit);
  const agreed = scales.map((scale, k) => OPEN.map((rho) => Math.min(rho ** 2 + 1 / rowsOf(dim * usual[k], scale, scales), 1)));
  const apart = scales.map((_, k) => apartFrom(tails, k, shape, residual));
  const likely = OPEN.map((_, i) => sum(scales.map((_, k) => loglikelihood(agreed[k][i] * usual[k] * own[k], sd, apart[k]))));
  const highest = Math.max(...likely);
  const chance = likely.map((value, i) => Math.exp(value - highest) / OPEN[i]);
  const variance = (sizes) => {
    const square = (_, i) => sum(scales.map((_, k) => weights[k] * Math.sqrt(agreed[k][i] * own[k] * sizes[k]))) ** 2; // all scales agree
    return length * average(OPEN.map(square), chance);
  };
  const byClipping = variance(usual);
  const bent = (each) => (1 + BENT * dot(fit, each) ** 2) / (1 + (BENT * dot(fit, fit)) / (residual.length - 1));
  const leaning = directions.map((each) => (byClipping > 0 ? Math.sqrt((variance(along(each)) * bent(each)) / byClipping) : 1));
  const inside = dot(unit, apply(shape, unit));
  const openSquares = length * Math.abs(sum(scales.map((_, k) => weights[k] * (own[k] - usual[k] * inside))));
  return { byClipping, leaning, openSquares };
}

// Mean squares of the outer matrices along a unit vector by a power law, shared out as the declared bounds let rows reach.
function expectedAlong({ scales, usual, through, reaches, dim }, direction) {
  const cells = apply(transpose(through), direction);
  return scales.map((scale, k) => usual[k] * Math.min(Math.min(dot(cells, cells), START * scale) / reaches[k], WHOLE * dim));
}

function withSeen(size, seen, noise) {
  const spread = (ROUGH * size) ** 2;
  return Math.max(size + (spread / Math.max(spread + noise, Number.MIN_VALUE)) * (seen - size), 0);
}

// The posterior of how far rows agree at each scale: before anything is seen, it is at least that of the scale before.
function rising(likely) {
  const above = RISING.map((_, i) => sum(RISING.slice(i)));
  let prior = EXPECTED;
  return likely.map((each) => {
    const product = each.map((value, i) => value * prior[i]);
    const whole = sum(product);
    const posterior = product.map((value) => value / whole);
    let total = 0;
    prior = RISING.map((weight, i) => weight * (total += posterior[i] / above[i]));
    return posterior;
  });
}

const average = (values, weights) => dot(values, weights) / sum(weights);
return { withTails, togetherWith };
})();

const module_channel = (() => {
// What the evidence says about the coefficients of one regression: a linear channel with known noise. As dpgram.regression.channel and
// dpgram.evidence.law, which has the mathematics; names are the same.

const { addToDiagonal, apply, dot, identity, inverse, multiply, norm, qr, transpose } = module_linalg;
const { eigenSymmetric } = module_eigen;
const { debiasedGain, positiveMoments, symmetricShrinkage, wishartShrinkage } = module_shrinkage;
const { INTERCEPT, ModelError } = module_design;
const { togetherWith, withTails } = module_tails;

const TINY = 1e-300;
const WEAK = 1.96; // a gain below so many sds of its noise may be zero
const EFFECT = 2; // of a 0/1 column, in standard deviations of the target: one standard deviation of what is expected
const TELLING = 1; // the same of one standard deviation of any other column, which then explains all of the target
const UNKNOWN_GAIN = 1e-3; // standard deviations of its noise
const sum = (values) => values.reduce((total, value) => total + value, 0);
const isDraw = (law) => law.degrees_of_freedom !== undefined;

// By the last of several rounds, for inference, or by all of them together, for estimates. Of rows beyond the last round's clip the former
// counts what outer matrices show, the latter what they show beyond doubt.
function makeChannel(release, plan, together = false) {
  const { evidence } = release;
  const last = channelFrom(release, plan, evidence.alone);
  if (evidence.tails === null) return together ? channelFrom(release, plan, evidence.together).seen : last.seen;
  const inner = { first: last.inBasis(evidence.tails.first), outer: evidence.tails.outer.map(last.inBasis) };
  const tails = { ...evidence.tails, ...inner, through: multiply(transpose(last.basis), evidence.tails.through) };
  if (!together) return withTails(tails, last.inner, last.seen, last.channelOf, last.back.map(unit), last.fitOf);
  return channelFrom(release, plan, togetherWith(evidence.together, tails, last.inner, last.seen)).seen;
}

// That of the last round's first matrix: of rows as they were shrunk.
const channelOfShrunk = (release, plan) => channelFrom(release, plan, release.evidence.alone).seen;

// The channel of a view, and what others are made of in its basis.
function channelFrom(release, plan, { matrix: gram, law, turn: own }) {
  const { evidence } = release;
  const turn = own ?? identity(gram.length);
  const frame = orthonormal(plan, turn);
  const inBasis = (matrix) => multiply(transpose(frame.basis), multiply(matrix, frame.basis));
  const ones = release.intercept ? apply(transpose(frame.basis), unit(turn.map((row) => row[0]))) : null;
  const back = multiply(plan.toOwn, inverse(frame.triangle));
  const channelOf = (block, noise) => channelBy(evidence, plan, { ...frame, ones, back }, block, noise);
  const inner = inBasis(gram);
  const fitOf = (residual) => fitted(frame, plan.names[0] === INTERCEPT ? ones : null, residual);
  return { seen: channelOf(inner, law), inner, inBasis, channelOf, basis: frame.basis, back, fitOf };
}

// The direction of what the regressors say of the label, less its mean where the regression has one; zero where that is nothing.
function fitted({ along, labelScale }, ones, residual) {
  const said = along.map((value, i) => value - labelScale * residual[i]);
  const inside = ones === null ? said.map(() => 0) : ones.slice(0, said.length);
  const mean = dot(inside, said) / Math.max(dot(inside, inside), TINY);
  const left = said.map((value, i) => value - inside[i] * mean);
  const length = Math.max(norm(left), TINY);
  return left.map((value) => value / length);
}

// By a matrix in the basis. Rows beyond the clip leave the variance `byClipping` in what was observed, in the mean of all directions, and
// `leaning` times its root of each coefficient: none, where nobody says more.
function channelBy(evidence, plan, { ones, back, along, labelScale, triangle }, block, noise) {
  const p = plan.names.length;
  const { values, vectors: axes } = eigenSymmetric(block.slice(0, p).map((row) => row.slice(0, p)));
  const side = Float64Array.from({ length: p }, (_, i) => block[i][p]);
  const cross = apply(transpose(axes), side);
  const square = block[p][p];
  const seen = {
    "symmetric-gaussian": () => additive(values, cross, noise),
    "wishart-sample": () => wishart(values, cross, square, noise),
    "inverse-wishart-sample": () => inverseWishart(values, cross, square, noise, evidence.alone.matrix.length),
  }[noise.name]();
  seen.measured = seen.gain;
  seen.debiased = debiasedGain(seen.gain, seen.weight, seen.spread);
  if (evidence.hidden) {
    seen.gain = seen.weight.map((w) => UNKNOWN_GAIN * Math.sqrt(2 * seen.spread) * w);
  }
  const drawn = isDraw(noise);
  const shift = noise.shift;
  seen.gainSd = seen.weight.map((w) => Math.sqrt(2 * seen.spread) * w);
  seen.hidden = gainBelow(seen, WEAK);
  const rows = evidence.counted.rows;
  Object.assign(seen, divided(seen, () => plausible({ values, axes, along, labelScale, triangle, ones, block, noise, rows, indicators: plan.indicators })));
  return {
    ...seen,
    axes,
    byClipping: 0,
    openSquares: 0,
    leaning: plan.names.map(() => 1),
    estimate: seen.observed.map((value, i) => value / seen.divisor[i]),
    perRow: seen.debiased.map((x, i) => x * (drawn ? seen.weight[i] : 1)),
    explains: seen.debiased.map((x) => x * (drawn ? shift : 1)),
    toOwn: multiply(back, axes).map((row) => row.map((value) => labelScale * value)),
    base: apply(back, along).map((value, i) => value + plan.offset[i]),
    scale: expectedSize(block, noise, ones),
    rows,
    designEffect: evidence.designEffect,
    unexplained: (seen.conditional ?? square) - shift,
    shift,
    labelScale,
  };
}

// Directions whose gain is less than `limit` sds of its noise, also once it is known that noise spreads a spectrum.
const gainBelow = (seen, limit) =>
  Array.from(seen.gain, (g, i) => Math.min(g, seen.expected[i]) < limit * seen.gainSd[i]);

// By what is observed divided for the estimate, and the variance that is left of coefficients in hidden directions.
function divided(seen, plausibleOf) {
  const { weight, spread, hidden } = seen;
  if (!hidden.includes(true)) return { divisor: seen.debiased, left: weight.map(() => 0) };
  const size = plausibleOf();
  const { first: mean, second } = positiveMoments(seen.expected, seen.gainSd);
  const total = size.map((tau, i) => tau * (second[i] + seen.others[i]) + seen.label * weight[i]);
  const shrunk = total.map((value, i) => value / (size[i] * mean[i]));
  const pull = sum(shrunk.map((value, i) => (hidden[i] ? weight[i] / value : 0)));
  const clear = [...hidden.keys()].filter((i) => !hidden[i]);
  const gains = debiasedGain(clear.map((i) => seen.measured[i] + spread * weight[i] * pull), clear.map((i) => weight[i]), spread);
  const divisor = Float64Array.from(shrunk);
  clear.forEach((i, k) => (divisor[i] = gains[k]));
  return { divisor, left: size.map((tau, i) => (hidden[i] ? tau * (1 - (tau * mean[i] ** 2) / total[i]) : 0)) };
}

// The mean square that is expected of b in each direction.
//
// That of a 0/1 column is a few standard deviations of the target. What a number has for itself, beside the other columns, explains no more
// than all of the target. Where noise is all there is of that, because its bounds are wide or because it is nearly a combination of other
// columns, its standard deviation is that of the noise: so its coefficient may be large.
function plausible({ values, axes, along, labelScale, triangle, ones, block, noise, rows, indicators }) {
  const turned = transpose(axes);
  const labelSd = sdOf(Float64Array.of(...along, labelScale), { ones, block, noise, rows });
  const ownSd = ownSds({ values, axes, triangle, noise, rows });
  const each = indicators.map((is, j) => ((is ? EFFECT : TELLING / ownSd[j]) * labelSd) ** 2);
  const middle = apply(turned, along); // where released coefficients are zero
  const spanned = multiply(turned, triangle).map((row) => row.map((value) => value ** 2));
  return Array.from(spanned, (row, i) => (row.reduce((total, value, j) => total + value * each[j], 0) + middle[i] ** 2) / labelScale ** 2);
}

// Standard deviations of what each column has beside the others, in scaled units, as far as they stand above the noise.
function ownSds({ values, axes, triangle, noise, rows }) {
  const seen = values.map((value) => Math.max(value - noise.shift, lawSd(noise), TINY));
  const back = multiply(inverse(triangle), axes);
  return back.map((row) => 1 / Math.sqrt(sum(Array.from(row, (value, i) => value ** 2 / seen[i])) * Math.max(rows, 1)));
}

// The standard deviation of a combination of the basis, in scaled units, as far as it stands above the noise.
function sdOf(column, { ones, block, noise, rows }) {
  const sd = lawSd(noise);
  const own = addToDiagonal(block, -noise.shift);
  const size = ones === null ? 0 : dot(ones, apply(own, ones));
  const sums = apply(own, column);
  let squares = dot(column, sums);
  if (size > sd) squares -= dot(ones, sums) ** 2 / size;
  return Math.sqrt(Math.max(squares, sd * dot(column, column), TINY) / Math.max(rows, 1));
}

// Diagonal of the privacy noise's covariance at b, without the rank-one part.
function noiseVariance(seen, b) {
  let size = 0;
  for (let i = 0; i < b.length; i++) size += seen.weight[i] * b[i] * b[i];
  const found = new Float64Array(b.length);
  for (let i = 0; i < b.length; i++) found[i] = seen.weight[i] * (seen.label + seen.spread * size);
  return found;
}

// The sum of squared errors of the unit label, unbiased, so that it may be negative.
const errorSquares = (seen) =>
  seen.unexplained
  - sum(seen.explains.map((e, i) => e * ((seen.observed[i] / seen.debiased[i]) ** 2 - (seen.label * seen.weight[i]) / seen.debiased[i] ** 2)));

// Coefficients in own units.
const inOwnUnits = (seen, b) => apply(seen.toOwn, b).map((value, i) => value + seen.base[i]);

// An orthonormal basis (d, p + 1) of the regressors and what is left of the label, with the way back.
function orthonormal(plan, turn) {
  const p = plan.names.length;
  const { r } = qr(plan.regressors.map((row, i) => Float64Array.of(...row, plan.label[i])));
  const own = r.map((row, i) => Math.abs(row[i])); // what each column adds to those before
  const largest = Math.max(...own.slice(0, p));
  if (own[p] < 1e-9 * norm(plan.label) || Math.min(...own.slice(0, p)) < 1e-9 * largest) {
    throw new ModelError(`The columns of this regression of ${plan.target} are exactly dependent, whatever the data are. Leave one out.`);
  }
  const { q, r: triangle } = qr(multiply(turn, plan.regressors));
  const label = apply(turn, plan.label);
  const across = transpose(q);
  const along = apply(across, label);
  const less = (vector, fitted) => vector.map((value, i) => value - fitted[i]);
  let rest = less(label, apply(q, along));
  const again = apply(across, rest); // what rounding left, where the label is nearly a combination of the regressors
  rest = less(rest, apply(q, again));
  again.forEach((value, i) => (along[i] += value));
  const labelScale = norm(rest);
  return { basis: q.map((row, i) => Float64Array.of(...row, rest[i] / labelScale)), triangle, along, labelScale };
}

const unit = (vector) => {
  const size = norm(vector);
  return vector.map((value) => value / size);
};

function additive(values, cross, noise) {
  const variance = noise.sd_off_diagonal ** 2;
  const gain = values.map((value) => value - noise.shift);
  const { mean, spread } = symmetricShrinkage(gain, variance);
  return {
    observed: cross, gain, weight: values.map(() => 1), label: variance, spread: variance, degrees: Infinity, expected: mean, others: spread,
  };
}

function wishart(values, cross, square, noise) {
  const p = values.length;
  const r = noise.degrees_of_freedom;
  if (r < p + 4) {
    throw new ModelError(
      `The release is a sketch of ${r} rows, but a regression with ${p} coefficients needs at least ${p + 4}. Use fewer features.`,
    );
  }
  const own = values.map((value) => Math.max(value, TINY));
  const weight = own.map((value) => (r - p - 1) / (r * value));
  const left = (Math.max(square - sum(own.map((value, i) => cross[i] ** 2 / value)), TINY) * r) / (r - p);
  const shrunk = wishartShrinkage(own, r).map((value) => 1 / value);
  return drawn(own, cross, noise.shift, weight, left, left / (r - p - 1), noise.shift ** 2 / (r - p - 3), r - p, shrunk);
}

function inverseWishart(values, cross, square, noise, dim) {
  const degrees = noise.degrees_of_freedom - dim + values.length; // of the block of the regressors
  const own = values.map((value) => Math.max(value, TINY));
  const weight = own.map((value) => noise.multiple / (degrees * value));
  const left = Math.max(square - sum(own.map((value, i) => cross[i] ** 2 / value)), TINY) / noise.multiple;
  const shrunk = wishartShrinkage(weight, degrees);
  const conditional = left * Math.max(degrees - 1, 1);
  return drawn(own, cross, noise.shift, weight, conditional, left, noise.shift ** 2 / degrees, degrees, shrunk);
}

function drawn(values, cross, shift, weight, conditional, label, spread, degrees, shrunk) {
  const total = sum(shrunk);
  return {
    observed: cross.map((value, i) => value / values[i]),
    gain: weight.map((w) => 1 - shift * w),
    weight,
    label,
    spread,
    degrees,
    conditional,
    expected: shrunk.map((s) => 1 - shift * s),
    others: shrunk.map((s) => spread * s * (total - s)),
  };
}

// The noise's standard deviation along the weakest directions.
const lawSd = (noise) => (isDraw(noise) ? noise.floor / Math.sqrt(noise.degrees_of_freedom) : noise.sd_off_diagonal);

// About what b^2 would be if the regressors explained the label: its sum of squares over theirs, about their means.
function expectedSize(block, noise, ones) {
  const p = block.length - 1;
  const sd = lawSd(noise);
  const own = addToDiagonal(block, -noise.shift);
  let features = 0;
  for (let i = 0; i < p; i++) features += own[i][i];
  let label = own[p][p];
  if (ones !== null && p > 1) {
    const cross = apply(own, ones);
    const size = dot(ones, cross);
    const [sides, inside] = [cross.slice(0, p), ones.slice(0, p)];
    if (dot(inside, inside) > 0.5 && size > sd) {
      features -= dot(sides, sides) / size;
      label -= cross[p] ** 2 / size;
    }
  }
  return Math.max(label, sd, TINY) / Math.max(features, sd * Math.sqrt(p), TINY);
}
return { makeChannel, channelOfShrunk, gainBelow, noiseVariance, errorSquares, inOwnUnits };
})();

const module_encode = (() => {
// Cells as a reader types them, encoded as the release's rows were: clamped to the declared bounds, missing ones filled, derived columns
// computed from them. As dpgram.encoding.

const { apply, solve, transpose } = module_linalg;

const DAY = 86400; // seconds

// What each coefficient is multiplied by, in own units. `cells` maps a declared column to a number (days for a date, 0 or 1 for a truth
// value, the place among the levels of a category) or null, a missing cell.
function ownFeatures(release, plan, cells) {
  const scaled = new Float64Array(release.encoded.length);
  if (release.intercept) scaled[0] = 1;
  const cell = (column) => clamp(column, cells[column.name]);
  if (neededCells(release, columnsAt(release, plan.places)).some((column) => column.drops && Number.isNaN(cell(column)))) {
    return new Float64Array(plan.places.length).fill(NaN); // such rows did not count
  }
  const used = new Set(columnsAt(release, plan.places));
  for (const name of used) {
    const own = ownColumns(release, name, cells);
    release.encoded.forEach((e, j) => {
      if (e.column === name) scaled[j] = Math.min(Math.max((own.shift() - e.centre) / e.half, -1), 1);
    });
  }
  const found = solve(transpose(plan.toOwn), apply(transpose(plan.regressors), scaled));
  return found.map((value) => plan.labelUnit * value);
}

const columnsAt = (release, places) => places.map((j) => release.encoded[j].column).filter((name) => name !== null);

// Declared columns that a set of features is computed from.
function neededCells(release, columns) {
  const needed = new Set(release.encoded.filter((e) => columns.includes(e.column)).flatMap((e) => e.sources));
  return release.declared.filter((column) => needed.has(column.name));
}

// A declared or derived column in its own units, one number for each of its encoded columns.
function ownColumns(release, name, cells) {
  const derived = release.derived.find((one) => one.name === name);
  if (derived) {
    const values = COMPUTED[derived.kind](derived, (parent) => clamp(declaredColumn(release, parent), cells[parent]));
    const filled = values.some((value) => Number.isNaN(value)) ? derived.fill : values;
    return filled.map((value) => Math.min(Math.max(value, derived.lower), derived.upper));
  }
  const column = declaredColumn(release, name);
  const value = clamp(column, cells[name]);
  const found = Number.isNaN(value) ? column.fill : value;
  if (column.kind !== "categorical") return column.indicator ? [found, Number(Number.isNaN(value))] : [found];
  return column.levels.slice(1).map((_, k) => (found === k + 1 ? 1 : 0));
}

const declaredColumn = (release, name) => release.declared.find((column) => column.name === name);

// The cell that a column's kind allows, or NaN where it is missing.
function clamp(column, value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return column.missing_level ?? NaN;
  if (column.kind === "categorical" || column.kind === "boolean") return value;
  return Math.min(Math.max(value, column.lower), column.upper);
}

const COMPUTED = {
  product(derived, cell) {
    const [first, second] = derived.factors.map(({ column, levels }) => {
      const value = cell(column);
      return levels === null ? [value] : levels.map((level) => (Number.isNaN(value) ? NaN : Number(value === level)));
    });
    return first.flatMap((a) => second.map((b) => a * b));
  },
  power(derived, cell) {
    const x = cell(derived.of);
    let found = x;
    for (let k = 1; k < derived.exponent; k++) found *= x;
    return [found];
  },
  log: (derived, cell) => [Math.log(cell(derived.of))],
  log1p: (derived, cell) => [Math.log1p(cell(derived.of))],
  interval(derived, cell) {
    const x = cell(derived.of);
    const [low, high] = [derived.from ?? -Infinity, derived.to ?? Infinity];
    return [Number.isNaN(x) ? NaN : Number(low <= x && x < high)];
  },
  "date-part"(derived, cell) {
    const value = datePart(cell(derived.of), derived.part);
    if (derived.wanted === null) return [value];
    return derived.wanted.map((level) => (Number.isNaN(value) ? NaN : Number(value === level)));
  },
};

// A part of a date given as days since 1970-01-01, in UTC; weekdays are ISO's, Monday is 1.
function datePart(days, part) {
  if (Number.isNaN(days)) return NaN;
  const seconds = Math.round(days * DAY);
  const date = new Date(seconds * 1000);
  const whole = Math.floor(seconds / DAY);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const start = new Date(0);
  start.setUTCFullYear(year, 0, 1);
  return {
    year,
    quarter: Math.floor(month / 3) + 1,
    month: month + 1,
    day_of_year: whole - Math.round(start.getTime() / (1000 * DAY)) + 1,
    day: date.getUTCDate(),
    weekday: ((((whole + 3) % 7) + 7) % 7) + 1, // 1970-01-01 was a Thursday
    hour: date.getUTCHours(),
  }[part];
}
return { ownFeatures, neededCells, clamp, datePart };
})();

const module_estimate = (() => {
// Coefficients in own units: `debiased`, which intervals are about, and `shrunk`, which predictions use. As dpgram.regression.fit.

const { inOwnUnits } = module_channel;
const { positiveMoments } = module_shrinkage;

const PSEUDO_COEFFICIENTS = 4; // how much the expected size of coefficients counts, beside what is seen of them
const GRID = Array.from({ length: 81 }, (_, k) => -9 + (16 * k) / 80); // of the logarithm of a coefficient's variance

const debiased = (seen) => inOwnUnits(seen, seen.estimate);

// The coefficients with the smallest mean square error to be expected.
function shrunk(seen) {
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
return { debiased, shrunk };
})();

const module_pivot = (() => {
// The test behind Fieller's intervals: how far observations are from what given coefficients predict, made as small as possible over all
// coefficients with given values of some combinations. As dpgram.inference.pivot, one problem at a time.

const { noiseVariance } = module_channel;
const { apply, dot, qr, solve, transpose } = module_linalg;

const ITERATIONS = 80;
const LOOSE = 1e-6; // of what a change along the weakest direction counts, where a search starts far out
const LOWER = 0.99; // of what was found: a start that is no lower leads to the same valley, or to one that is as deep
const SMALLEST = 2.2250738585072014e-308; // positive and normal
const FADED = 1e-9; // what is left of the noise's dependence on coefficients that are seen to first order

// What the test knows of a regression: all directions as they are.
const exactly = ({ observed, gain, weight, label, spread, debiased }, { byTable }) =>
  ({ observed, gain, weight, label, spread, estimate: observed.map((value, i) => value / debiased[i]), byTable });

// Directions whose gain may be zero as Wald's intervals take them: their coefficients are of plausible size.
function locally(seen, known) {
  const { hidden: weak, weight, spread, estimate, divisor, left } = seen;
  if (!weak.includes(true)) return exactly(seen, known);
  let inside = 0;
  estimate.forEach((b, i) => (inside += weak[i] ? weight[i] * (b ** 2 + left[i]) : 0));
  return {
    ...exactly(seen, known),
    estimate,
    gain: seen.gain.map((g, i) => (weak[i] ? divisor[i] : g)),
    weight: weight.map((w, i) => (weak[i] ? FADED * w : w)),
    byTable: known.byTable.map((value, i) => (weak[i] ? left[i] * divisor[i] ** 2 : value + weight[i] * spread * inside)),
  };
}

// The least that the statistic tends to where coefficients go to infinity. True gains are not negative.
const farOut = ({ gain, weight, spread }) =>
  gain.reduce((least, g, i) => Math.min(least, Math.max(g, 0) ** 2 / (2 * spread * weight[i] ** 2)), Infinity);

// The squared distance at b, its gradient, and the covariance's diagonal part.
function statistic(of, b) {
  const { weight, spread, gain, observed, byTable } = of;
  const p = b.length;
  const diagonal = noiseVariance(of, b);
  let [inner, shadedSum, plain] = [0, 0, 0];
  const along = new Float64Array(p);
  const whitened = new Float64Array(p);
  const shaded = new Float64Array(p);
  for (let i = 0; i < p; i++) {
    diagonal[i] += byTable[i];
    const residual = observed[i] - gain[i] * b[i];
    along[i] = weight[i] * b[i];
    whitened[i] = residual / diagonal[i];
    shaded[i] = along[i] / diagonal[i];
    inner += along[i] * whitened[i];
    shadedSum += along[i] * shaded[i];
    plain += residual * whitened[i];
  }
  const share = (spread * inner) / (1 + spread * shadedSum); // Sherman and Morrison
  let [growth, slope] = [0, 0];
  const solved = whitened; // renamed: whitened less share times shaded
  for (let i = 0; i < p; i++) {
    solved[i] -= share * shaded[i];
    growth += weight[i] * solved[i] * solved[i];
    slope += along[i] * solved[i];
  }
  const gradient = new Float64Array(p);
  for (let i = 0; i < p; i++) {
    gradient[i] = -2 * gain[i] * solved[i] - 2 * spread * weight[i] * (growth * b[i] + slope * solved[i]);
  }
  return { distance: plain - share * inner, gradient, diagonal };
}

// The smallest statistic over all b with combination @ b = value for each of `combinations`; stops as soon as it is at most `enough`.
// Far from the estimate there may be several valleys: the search starts at the nearest point, and once more along the direction whose gain is
// weakest where that is clearly lower than what was found.
function profile(of, combinations, values, enough = 0) {
  const first = noiseVariance(of, of.estimate);
  const plain = of.gain.map((g, i) => g ** 2 / (first[i] + of.byTable[i]));
  const middle = median(plain);
  const metric = plain.map((m) => m + 1e-3 * middle + SMALLEST);
  const { start, along } = feasible(of.estimate, combinations, values);
  const least = descended(of, start(metric), along, enough);
  if (least <= enough) return least;
  const weakest = smallest(of.gain.map((g, i) => (g / of.weight[i]) ** 2));
  const far = start(metric.map((m, i) => (i === weakest ? LOOSE * m : m)));
  if (!(statistic(of, far).distance < LOWER * least)) return least;
  return Math.min(least, descended(of, far, along, enough));
}

// The smallest statistic that steps from b lead to.
function descended(of, b, along, enough) {
  const p = b.length;
  const metric = new Float64Array(p);
  let { distance: best, gradient, diagonal } = statistic(of, b);
  let damping = 1e-3;
  for (let k = 0; k < ITERATIONS; k++) {
    let largest = 0;
    for (let i = 0; i < p; i++) {
      metric[i] = (of.gain[i] * of.gain[i]) / diagonal[i];
      if (metric[i] > largest) largest = metric[i];
    }
    const step = new Float64Array(p);
    for (let i = 0; i < p; i++) {
      metric[i] += damping * largest + SMALLEST;
      step[i] = -gradient[i] / 2 / metric[i];
    }
    const next = along(metric, step);
    for (let i = 0; i < p; i++) next[i] += b[i];
    const tried = statistic(of, next);
    const better = tried.distance < best;
    const settled =
      (better && best - tried.distance < 1e-7 * (1 + best)) || damping > 1e7 || Math.min(best, tried.distance) <= enough;
    if (better) {
      b = next;
      ({ distance: best, gradient, diagonal } = tried);
    }
    damping = better ? Math.max(damping / 4, 1e-12) : Math.min(damping * 6, 1e8);
    if (settled) break;
  }
  return best;
}

// { start, along }: of the b that meet the constraints, the one nearest to `estimate` in a metric; and of a step, the part that keeps to them.
// Where constraints are many, what they leave free is the smaller matrix.
function feasible(estimate, combinations, values) {
  if (2 * combinations.length > estimate.length) return byFreedom(estimate, combinations, values);
  return {
    start: (metric) => {
      const lift = lifted(combinations, metric, combinations.map((row, c) => values[c] - dot(row, estimate)));
      return estimate.map((value, i) => value + lift[i]);
    },
    along: (metric, step) => {
      const found = lifted(combinations, metric, combinations.map((row) => dot(row, step)));
      for (let i = 0; i < step.length; i++) found[i] = step[i] - found[i];
      return found;
    },
  };
}

// The shortest change of b, in `metric`, that moves the combinations by `gap`.
function lifted(combinations, metric, gap) {
  if (combinations.length === 1) return liftedOne(combinations[0], metric, gap[0]);
  const over = combinations.map((row) => row.map((value, i) => value / metric[i]));
  const inner = over.map((left) => Float64Array.from(combinations, (right) => dot(left, right)));
  const factors = solve(inner, gap);
  const found = new Float64Array(metric.length);
  over.forEach((row, c) => row.forEach((value, i) => (found[i] += value * factors[c])));
  return found;
}

// The same for one combination, which is what intervals ask for, thousands of times.
function liftedOne(combination, metric, gap) {
  const found = new Float64Array(metric.length);
  let inner = 0;
  for (let i = 0; i < metric.length; i++) {
    found[i] = combination[i] / metric[i];
    inner += found[i] * combination[i];
  }
  for (let i = 0; i < metric.length; i++) found[i] *= gap / inner;
  return found;
}

function byFreedom(estimate, combinations, values) {
  const c = combinations.length;
  const scaled = combinations.map((row) => Math.sqrt(dot(row, row))); // combinations may have any units
  const { q, r } = qr(transpose(combinations.map((row, k) => row.map((value) => value / scaled[k]))), true);
  const inside = solve(transpose(r), values.map((value, k) => value / scaled[k]));
  const point = apply(q.map((row) => row.slice(0, c)), inside); // meets the constraints
  const free = transpose(q.map((row) => row.slice(c))); // directions in which they still hold
  const along = (metric, step) => {
    const found = new Float64Array(step.length);
    if (!free.length) return found;
    const over = free.map((row) => row.map((value, i) => value * metric[i]));
    const factors = solve(over.map((left) => Float64Array.from(free, (right) => dot(left, right))), over.map((row) => dot(row, step)));
    free.forEach((row, k) => row.forEach((value, i) => (found[i] += value * factors[k])));
    return found;
  };
  const start = (metric) => {
    const within = along(metric, estimate.map((value, i) => value - point[i]));
    return point.map((value, i) => value + within[i]);
  };
  return { start, along };
}

// The place of the smallest value.
function smallest(values) {
  let place = 0;
  for (let i = 1; i < values.length; i++) if (values[i] < values[place]) place = i;
  return place;
}

function median(values) {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
return { exactly, locally, farOut, profile };
})();

const module_intervals = (() => {
// Intervals that count the privacy noise, around the debiased estimate: Wald's, Fieller's, and of the two what is right for each
// coefficient. As dpgram.inference.intervals, whose docstring says what is assumed.

const { errorSquares, gainBelow } = module_channel;
const { apply, dot, transpose } = module_linalg;
const { exactly, farOut, locally, profile } = module_pivot;
const { quantile } = module_special;

const FAR = 1e4; // standard errors; a set that reaches so far is unbounded
const STEPS = [0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 10, 20, 50, 200, 1000, FAR];
const ABOUT = 0.1; // of a combination's squares: so much in hidden directions is more than noise would turn there
const DOUBTFUL = 4; // below so many sds of its noise, a gain is too uncertain for first order
const HALVINGS = 12;
const sum = (values) => values.reduce((total, value) => total + value, 0);

// Variance of the errors of the unit label, floored at zero.
const errorVariance = (seen) => Math.max(errorSquares(seen), 0) / rowsLeft(seen, seen.rows);

// By what to divide squares that so many rows left unexplained: each coefficient takes as many rows as the design effect says.
const rowsLeft = (seen, rows) => Math.max(rows - seen.designEffect * seen.gain.length, seen.designEffect);

// By how much more or less than others the sum of squared errors may lack of long rows, as a part of it.
const squaresLeftOpen = (seen) =>
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
function uncertainty(seen) {
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

const wald = (seen, known, confidence) =>
  Array.from(seen.gain, (_, place) => waldOf(seen, confidence, coefficientAt(seen, known, place)));

function waldOf(seen, confidence, { se, estimate }) {
  const reach = quantile(confidence, seen.degrees) * se;
  return { lower: estimate - reach, upper: estimate + reach, method: "wald" };
}

// What intervals and tests are about: one coefficient, or a combination of all of them with `weights`.
const coefficientAt = (seen, known, place) => ({
  row: seen.toOwn[place], base: seen.base[place], se: known.se[place], estimate: dot(seen.toOwn[place], seen.estimate) + seen.base[place],
});

function combination(seen, known, weights) {
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

const fieller = (seen, known, confidence) => {
  const of = exactly(seen, known);
  return Array.from(seen.gain, (_, place) => inverted(seen, of, confidence, coefficientAt(seen, known, place)));
};

// Which combinations, rows in the channel's own basis, owe most of their variance to directions whose gain may well be zero. Those that may
// have no gain at all count only for combinations that are about them: what they add to others, because noise turned them there, is bounded.
function weaklyIdentified(seen, known, rows, below) {
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
function tests(seen, known, intervals, rows = seen.toOwn) {
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
const intervalBy = (seen, of, confidence, one) => (of === null ? waldOf(seen, confidence, one) : inverted(seen, of, confidence, one));

// Wald's intervals, and Fieller's for what is identified weakly or doubtfully.
function automatic(seen, known, confidence) {
  return tests(seen, known, "auto").map((of, place) => intervalBy(seen, of, confidence, coefficientAt(seen, known, place)));
}
return { DOUBTFUL, errorVariance, rowsLeft, squaresLeftOpen, uncertainty, wald, coefficientAt, combination, fieller, weaklyIdentified, tests, intervalBy, automatic };
})();

const module_noise = (() => {
// How the privacy noise moves sums of products. As Evidence.noise_law in Python.

const { apply, dot } = module_linalg;

// Products K and the rest e with Cov(a'Eb, c'Ed) = K_ac K_bd + K_ad K_bc + e sum_i a_i b_i c_i d_i; vectors as the noise sees them.
function noiseLaw({ alone: { matrix, law }, byNoise }, forms) {
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
return { noiseLaw };
})();

const module_goodness = (() => {
// Residual variance and R^2 with intervals that count the privacy noise. As dpgram.inference.goodness.

const { channelOfShrunk, inOwnUnits } = module_channel;
const { errorVariance, rowsLeft, uncertainty, weaklyIdentified } = module_intervals;
const { apply, dot, solve } = module_linalg;
const { noiseLaw } = module_noise;
const { chiSquareAbove, chiSquareBelow, quantile } = module_special;

// Of rows as they were shrunk, where they were.
function goodness(release, plan, confidence) {
  const seen = channelOfShrunk(release, plan);
  const rows = rowsLeft(seen, seen.rows);
  const reach = quantile(confidence, seen.degrees);
  const { evidence } = release;
  const products = (a, b) => product(evidence.weighed, a, b);
  const coefficients = inOwnUnits(seen, seen.observed.map((value, i) => value / seen.debiased[i])); // shrunk ones would have seen less noise
  const scaled = solve(plan.toOwn, coefficients.map((value, i) => value - plan.offset[i]));
  const fitted = apply(plan.regressors, scaled);
  const u = plan.label.map((value, i) => value - fitted[i]);
  const left = Math.max(errorVariance(seen) * rows * seen.labelScale ** 2 + weighing(evidence, u), 0);
  const about = aboutItsMean(products, plan);
  const whole = products(about, about);
  const around = seen.shift * dot(u, u);
  let noise = quadraticCovariance(evidence, u, u);
  let [below, above] = [reach * Math.sqrt(noise), reach * Math.sqrt(noise)];
  if (seen.degrees !== Infinity) { // a draw multiplies what is left over, the shift within it, by chi-square over its degrees
    noise = (2 * (left + around) ** 2) / seen.degrees;
    const [low, high] = chiSquareEnds(seen.degrees, confidence);
    [below, above] = [(left + around) * (1 - 1 / high), (left + around) * (1 / low - 1)];
  }
  const sampling = reach * Math.sqrt((2 * seen.designEffect) / rows) * left;
  const { rows: count, rowsSd: countSd } = evidence.weighedRows;
  if (countSd > 0) { // the number of rows was read from the matrix too
    const [low, high] = chiSquareEnds(Math.max(2 * (count / countSd) ** 2, 1), confidence);
    [below, above] = [Math.hypot(below, left * (1 - low)), Math.hypot(above, left * (high - 1))];
  }
  const unit = plan.labelUnit ** 2 / rowsLeft(seen, count);
  const weak = weaklyIdentified(seen, uncertainty(seen), seen.toOwn);
  const mayExplainAll = weak.includes(true);
  const lowest = mayExplainAll ? 0 : Math.max(left - Math.hypot(below, sampling), 0);
  const hidden = evidence.hidesSquares && weak.filter(Boolean).length > weak.length / 2;
  const highest = hidden ? Infinity : left + Math.hypot(above, sampling);
  const found = { residualVariance: left * unit, residualVarianceInterval: [lowest * unit, highest * unit] };
  const spread = quadraticCovariance(evidence, about, about);
  if (whole <= reach * Math.sqrt(spread)) return { ...found, rSquared: null, rSquaredInterval: [0, 1] };
  const ratio = Math.min(left / whole, 1);
  const change =
    (noise - 2 * ratio * quadraticCovariance(evidence, u, about) + ratio ** 2 * spread) / whole ** 2
    + (4 * (1 - ratio) * ratio ** 2 * seen.designEffect) / seen.rows;
  const wide = reach * Math.sqrt(Math.max(change, 0));
  const most = mayExplainAll ? 1 : Math.min(1 - ratio + wide, 1);
  return { ...found, rSquared: 1 - ratio, rSquaredInterval: [Math.max(1 - ratio - wide, 0), most] };
}

// What chi-square over its degrees of freedom lies between.
function chiSquareEnds(degrees, confidence) {
  const tail = (1 - confidence) / 2;
  return [chiSquareBelow(degrees, tail), chiSquareAbove(degrees, tail)];
}

// What the sum of squares of u is less, or more, where rows count with the weights that shrinking them in whitened coordinates left.
const weighing = ({ weighed, alone }, u) => (weighed.turn === null ? 0 : product(weighed, u, u) - product(alone, u, u));

// The sum of products of two combinations of columns.
function product({ matrix, turn }, a, b) {
  const there = (columns) => (turn ? apply(turn, columns) : columns);
  return dot(there(a), apply(matrix, there(b)));
}

// The label less its mean, as a combination of columns; the label itself where the model has no intercept.
function aboutItsMean(products, plan) {
  if (!plan.constant) return plan.label;
  const ones = plan.regressors.map((row) => row[0]);
  const mean = products(ones, plan.label) / Math.max(products(ones, ones), 1);
  return plan.label.map((value, i) => value - plan.regressors[i][0] * mean);
}

// Covariance of a'Ea and b'Eb, E the privacy noise on the sums of products; to first order where it multiplies.
function quadraticCovariance(evidence, a, b) {
  const { products, excess, forms: [first, second] } = noiseLaw(evidence, [a, b]);
  let fourth = 0;
  for (let i = 0; i < first.length; i++) fourth += first[i] ** 2 * second[i] ** 2;
  return 2 * products[0][1] ** 2 + excess * fourth;
}
return { goodness };
})();

const module_hypotheses = (() => {
// Tests that coefficients are zero: one hypothesis has one p-value, wherever it is asked for. As dpgram.inference.hypotheses.

const { gainBelow } = module_channel;
const { eigenSymmetric } = module_eigen;
const { DOUBTFUL } = module_intervals;
const { apply, dot, identity, qr, solve, transpose } = module_linalg;
const { exactly, farOut, locally, profile } = module_pivot;
const { pValue } = module_special;

// Of the hypothesis that a coefficient or a combination is zero, by the test `of`; null stands for Wald's.
function statistic(of, { row, base, se, estimate }) {
  if (of === null) return estimate === 0 ? 0 : (estimate / se) ** 2;
  if (estimate * (-base - dot(row, of.estimate)) >= 0) return 0; // between the estimate and what the test rejects least
  return Math.min(profile(of, [row], [-base]), farOut(of));
}

// That the coefficients at `places` are all zero. What the release says too little about takes no part.
function jointTest(seen, known, places, intervals) {
  let rows = places.map((j) => seen.toOwn[j]);
  let wanted = places.map((j) => -seen.base[j]);
  let of = intervals === "fieller" ? exactly(seen, known) : null;
  if (intervals === "auto") {
    const root = known.spent.map(Math.sqrt);
    const { q, r } = qr(transpose(rows.map((row) => row.map((value, j) => value * root[j]))));
    const axes = knownAxes(q, seen.hidden);
    if (axes.length) {
      const back = transpose(r);
      const turned = (values) => {
        const inside = solve(back, values);
        return axes.map((axis) => dot(axis, inside));
      };
      const columns = transpose(rows).map(turned);
      [rows, wanted] = [transpose(columns), turned(wanted)];
      const kept = q.map((line) => axes.map((axis) => dot(line, axis)));
      if (knownAxes(kept, gainBelow(seen, DOUBTFUL)).length < axes.length) of = locally(seen, known);
    } else of = exactly(seen, known);
  }
  const found = of === null ? wald(seen, known, rows, wanted) : profile(of, rows, wanted);
  return { statistic: found, degrees: rows.length, pValue: pValue(found, rows.length, seen.degrees) };
}

// The combinations of orthonormal columns that owe at most half of their variance to what is hidden, each as an array.
function knownAxes(columns, hidden) {
  const count = columns[0].length;
  if (!hidden.includes(true)) return identity(count);
  const lost = transpose(columns.filter((_, i) => hidden[i]));
  const { values, vectors } = eigenSymmetric(lost.map((left) => Float64Array.from(lost, (right) => dot(left, right))));
  return transpose(vectors).filter((_, k) => values[k] <= 0.5);
}

// How far the estimate is from the restrictions, in units of its covariance.
function wald(seen, known, rows, wanted) {
  const along = rows.map((row) => dot(row, known.along));
  const turn = transpose(seen.toOwn);
  const leaning = seen.byClipping > 0 ? rows.map((row) => apply(turn, solve(turn, row).map((value, i) => value * seen.leaning[i]))) : rows;
  const weighed = (left, right, weights) => left.reduce((total, value, j) => total + value * weights[j] * right[j], 0);
  const covariance = rows.map((left, a) => Float64Array.from(rows, (right, b) =>
    weighed(left, right, known.byNoiseAndRows) + weighed(leaning[a], leaning[b], known.byClipping) + seen.spread * along[a] * along[b]));
  const scale = covariance.map((row, a) => Math.sqrt(row[a]));
  const away = wanted.map((value, a) => (value - dot(rows[a], seen.estimate)) / scale[a]);
  return dot(away, solve(covariance.map((row, a) => row.map((value, b) => value / scale[a] / scale[b])), away));
}
return { statistic, jointTest };
})();

const module_fit = (() => {
// One regression from a release: what `dpgram regress --json` prints, and predictions. As dpgram.analysis.fit.

const { makeChannel } = module_channel;
const { INTERCEPT, madeUp, makeDesign, unmarked } = module_design;
const { ownFeatures } = module_encode;
const { debiased, shrunk } = module_estimate;
const { goodness } = module_goodness;
const { jointTest, statistic } = module_hypotheses;
const { automatic, coefficientAt, combination, fieller, intervalBy, tests, uncertainty, wald, weaklyIdentified } = module_intervals;
const { multiply, dot } = module_linalg;
const { pValue, quantile } = module_special;

// `target` is a place in the matrix, `columns` the features' names. `intervals`: auto, wald, fieller or bootstrap.
function fit(release, target, columns, options = {}) {
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
function findBootstrap(release, names, target, confidence) {
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
return { fit, findBootstrap };
})();

const module_python = (() => {
// The chosen model as a few lines of Python that give the same numbers.

const { columnsOf, defaultFeatures, placesOf } = module_design;
const { neededCells } = module_encode;
const { make } = module_dom;
const { dateText } = module_format;

const text = (value) => JSON.stringify(value); // a JSON string is a Python string

function pythonCode(release, choice, cells) {
  const target = release.encoded[choice.target].name;
  const chosen = columnsOf(release).filter((column) => choice.features.has(column));
  const usual = defaultFeatures(release, choice.target);
  const same = chosen.length === usual.length && chosen.every((column, k) => column === usual[k]);
  const options = [...(same ? [] : [`[${chosen.map(text).join(", ")}]`]), ...optionsOf(release, choice)];
  const row = neededCells(release, chosen).map((column) => `    ${text(column.name)}: [${cell(column, cells[column.name])}],\n`);
  return [
    "import dpgram", "", 'release = dpgram.load("release.json")',
    `fit = dpgram.regress(${["release", text(target), ...options].join(", ")})`, "print(fit.summary())",
    ...(row.length ? [`row = {\n${row.join("")}}`, 'print(fit.predict(row, interval="mean"))', 'print(fit.predict(row, interval="observation"))'] : []), "",
  ].join("\n");
}

const optionsOf = (release, choice) => [
  ...(choice.intervals === "auto" ? [] : [`intervals=${text(choice.intervals)}`]),
  ...(choice.confidence === 0.95 ? [] : [`confidence=${choice.confidence}`]),
  ...(release.intercept && !choice.intercept ? ["intercept=False"] : []),
];

// How the coefficient that is followed moves as the features enter.
function controlsCode(release, choice) {
  const { name, column } = release.encoded[choice.followed];
  const listed = (names) => `[${names.map(text).join(", ")}]`;
  const others = columnsOf(release).filter((one) => choice.features.has(one) && one !== column);
  const levels = name === column ? [] : placesOf(release, column).map((j) => release.encoded[j].name).filter((one) => one !== name);
  const features = levels.length ? [`features=${listed(levels)}`] : [];
  const given = ["release", text(release.encoded[choice.target].name), text(name), listed(others), ...features, ...optionsOf(release, choice)];
  return `dpgram.controls(${given.join(", ")})`;
}

// Partial correlations of whole columns, which are at these places of the matrix.
function partialCode(release, places, confidence) {
  const columns = [...new Set(places.map((j) => release.encoded[j].column))];
  const listed = columns.length === columnsOf(release).length ? "" : `, [${columns.map(text).join(", ")}]`;
  return `dpgram.partial_correlations(release${listed}${confidence === 0.95 ? "" : `, confidence=${confidence}`})`;
}

// The difference of two coefficients, by their names.
const differenceCode = (first, second) => `fit.t_test({${text(first)}: 1, ${text(second)}: -1})`;

function cell(column, value) {
  if (value === null || value === column.missing_level) return "None";
  if (column.kind === "date") return text(dateText(value, true));
  if (column.kind === "boolean") return value ? "True" : "False";
  if (column.kind === "numeric") return String(value);
  if (!column.numbers) return text(column.levels[value]);
  const level = column.levels[value]; // "other" is a number that no category has
  return level === "other" ? String(Math.max(...column.levels.map(Number).filter(Number.isFinite)) + 1) : level;
}

function codeBox(code) {
  const said = make("span", { class: "small", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
    } catch { // without the clipboard's permission, the old way
      const area = make("textarea", { class: "offscreen", "aria-hidden": "true" });
      area.value = code;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    said.textContent = "copied";
  };
  return [
    make("div", { class: "row tools" }, make("button", { type: "button", id: "copy", onclick: copy }, "Copy as Python"), said),
    make("pre", { tabindex: "0", "aria-label": "Python code of this model" }, make("code", { id: "code" }, code)),
  ];
}
return { pythonCode, controlsCode, partialCode, differenceCode, codeBox };
})();

const module_controls = (() => {
// How one coefficient moves as the other features enter a regression, and how far two coefficients are apart. As dpgram.controls and
// Fit.t_test.

const { bars, NAMED, surely } = module_coefficients;
const { columnsOf, failed, INTERCEPT, placesOf } = module_design;
const { dropDown, make, shorten } = module_dom;
const { fit } = module_fit;
const { interval, number, probability } = module_format;
const { controlsCode, differenceCode } = module_python;

const MANY = 30; // regressions, beyond which nobody reads the picture
const SLOW = 40; // coefficients of a model, beyond which a reader waits for its steps, and is told so
const MOST = 100; // ... and beyond which the wait is too long

// The regression of the target on the column of a coefficient alone, then with one more of the other features at a time, in their order.
function steps(release, target, columns, followed, options) {
  const { column } = release.encoded[followed];
  const others = columns.filter((one) => one !== column);
  const alone = placesOf(release, column).filter((j) => j !== followed).map((j) => release.encoded[j].name).join(", ") || "no controls";
  return [null, ...others].map((added, k) => {
    const found = fit(release, target, [column, ...others.slice(0, k)], options);
    const { coefficient, se, lower, upper, identified } = found.coefficients.find((c) => c.place === followed);
    return { name: added === null ? alone : `+ ${added}`, coefficient, se, lower, upper, identified };
  });
}

const slopesOf = (found) => found.coefficients.filter((c) => c.name !== INTERCEPT);

// The part of the page about the model that was `found`. What was chosen last stays chosen where the model still has it.
function controlsView(release, found, choice) {
  const slopes = slopesOf(found).filter((c) => !release.encoded[c.place].absent);
  const columns = columnsOf(release).filter((column) => choice.features.has(column));
  if (columns.length < 2) return small("This needs a model of two features or more.");
  if (columns.length > MANY) return small(`The model has ${columns.length} features. Choose ${MANY} or fewer to see this.`);
  if (slopes.length > MOST) return small(`The model has ${slopes.length} coefficients. Choose features with ${MOST} or fewer to see this.`);
  const at = slopes.find((c) => c.place === choice.followed) ?? slopes[0];
  const result = make("div", {});
  const fill = () => result.replaceChildren(...attempted(() => drawn(release, found, choice, columns)));
  const show = (place) => {
    choice.followed = Number(place);
    if (slopes.length <= SLOW) return fill();
    result.replaceChildren(small("Computing \u2026"));
    return setTimeout(() => result.isConnected && choice.followed === Number(place) && fill(), 30);
  };
  const named = slopes.map((c) => [String(c.place), c.name]);
  show(at.place);
  return make("div", {}, make("div", { class: "row tools" }, dropDown("Coefficient", named, String(at.place), show, { id: "followed" })), result);
}

function drawn(release, found, choice, columns) {
  const intervals = found.intervals === "bootstrap" ? "auto" : found.intervals; // simulated ones are there for whole models only
  const options = { confidence: found.confidence, intervals, intercept: choice.intercept };
  const moved = steps(release, choice.target, columns, choice.followed, options);
  const { name, column } = release.encoded[choice.followed];
  const tail = (1 - found.confidence) / 2;
  const heads = ["features", "coef", "std err", `[${number(tail, 4)}`, `${number(1 - tail, 4)}]`];
  const rows = moved.map((step) => make(
    "tr", { class: step.identified ? null : "lost" }, make("th", { scope: "row", title: step.name }, shorten(step.name, NAMED)),
    [step.coefficient, step.se, ...(step.identified ? [step.lower, step.upper] : [-Infinity, Infinity])].map((value, k) =>
      make("td", { "data-column": heads[k + 1] }, number(value))),
  ));
  const first = placesOf(release, column).length > 1 ? `with the rest of ${column} alone` : "without controls";
  const caption = `The coefficient of ${name}: first ${first}, then with one feature more in every line.`;
  return [
    bars(moved, () => 1, [make("span", {}, caption), surely(found)], `coefficient of ${name} in the regression of ${found.target}, in own units`, false),
    ...(intervals === found.intervals ? [] : [small("Simulated intervals are there for whole models only. These are chosen as usual (auto).")]),
    make(
      "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The coefficient at each step" },
      make("table", { class: "numbers", id: "steps" }, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)),
    ),
    inPython(controlsCode(release, { ...choice, intervals })),
  ];
}

const small = (...words) => make("p", { class: "small" }, ...words);

const inPython = (code) => small("In Python, with the lines at the end: ", make("code", {}, code));

// Elements, or words where they cannot be computed.
function attempted(compute) {
  try {
    return compute();
  } catch (problem) {
    return [small(failed(problem, "This"))];
  }
}

// One coefficient less another.
function differenceView(release, found, choice) {
  const slopes = slopesOf(found);
  if (slopes.length < 2) return small("This needs a model of two coefficients or more.");
  const places = new Set(slopes.map((c) => c.place));
  const [first, second] = pairOf(release, slopes);
  if (!places.has(choice.first) || !places.has(choice.second)) [choice.first, choice.second] = [first.place, second.place];
  const said = make("div", { id: "difference", role: "status" });
  const show = () => said.replaceChildren(...attempted(() => words(found, choice)));
  const pick = (which) => (value) => {
    choice[which] = Number(value);
    show();
  };
  const named = slopes.map((c) => [String(c.place), c.name]);
  show();
  return make(
    "div", {},
    make(
      "div", { class: "row tools" },
      dropDown("Coefficient of", named, String(choice.first), pick("first"), { id: "first" }),
      dropDown("less that of", named, String(choice.second), pick("second"), { id: "second" }),
    ),
    said,
  );
}

// Two levels of one category, which are in one unit, where the model has them.
function pairOf(release, slopes) {
  const levels = slopes.filter((c) => !release.encoded[c.place].absent);
  const beside = (c) => levels.find((other) => other !== c && release.encoded[other.place].column === release.encoded[c.place].column);
  const first = levels.find(beside) ?? slopes[0];
  return [first, beside(first) ?? slopes.find((c) => c !== first)];
}

function words(found, { first, second }) {
  const [one, other] = [first, second].map((place) => found.coefficients.find((c) => c.place === place).name);
  if (first === second) return [make("p", {}, "Choose two different coefficients.")];
  const weights = found.coefficients.map((c) => Number(c.place === first) - Number(c.place === second));
  const apart = found.contrast(weights);
  const test = apart.identified ? `, P>|z| ${probability(apart.pValue)}` : "";
  const level = apart.identified ? `${100 * found.confidence} % interval ` : "";
  const result = `${number(apart.estimate)} (std err ${number(apart.se)}), ${level}${interval([apart.lower, apart.upper])}${test}`;
  return [make("p", {}, `${one} \u2212 ${other} = ${result}`), inPython(differenceCode(one, other))];
}
return { steps, controlsView, differenceView };
})();

const module_partial = (() => {
// Partial correlations of columns of a release, each pair given all the others, with standard errors and intervals. As
// dpgram.inference.partial, whose docstring says why.

const { makeChannel } = module_channel;
const { designOf, ModelError } = module_design;
const { debiased } = module_estimate;
const { errorVariance, rowsLeft, squaresLeftOpen, uncertainty, weaklyIdentified } = module_intervals;
const { zeros } = module_linalg;
const { noiseLaw } = module_noise;
const { quantile } = module_special;

const LARGEST = 1 - 1e-12; // Fisher's z is finite below it

// Of the columns at `places`, two or more of them, none the intercept: names, and matrices with what is known of each pair.
function partials(release, places, confidence = 0.95) {
  const p = places.length;
  const { encoded } = release;
  const [slopes, noise, clip] = [zeros(p, p), zeros(p, p), zeros(p, p)];
  const known = places.map(() => new Array(p).fill(false));
  const [left, unsure] = [new Float64Array(p), new Float64Array(p)];
  const residuals = [];
  let last = null;
  places.forEach((target, i) => {
    const others = [...places.keys()].filter((j) => j !== i);
    const plan = designOf(release, target, others.map((j) => places[j]), true);
    const seen = makeChannel(release, plan);
    if (!seen.debiased.every((gain) => gain > 0)) throw new ModelError("These columns are exactly dependent in the release. Leave one out.");
    const parted = uncertainty(seen);
    const own = debiased(seen);
    const weak = weaklyIdentified(seen, parted, seen.toOwn);
    const { half, centre } = encoded[target];
    const residual = new Float64Array(encoded.length);
    residual[target] = half;
    residual[0] += centre - own[0];
    others.forEach((j, k) => {
      slopes[i][j] = own[k + 1];
      noise[i][j] = parted.sePrivacy[k + 1];
      clip[i][j] = parted.seClipping[k + 1];
      known[i][j] = !weak[k + 1];
      residual[places[j]] -= own[k + 1] * encoded[places[j]].half;
      residual[0] -= own[k + 1] * encoded[places[j]].centre;
    });
    left[i] = Math.sqrt(errorVariance(seen)) * seen.labelScale * half;
    unsure[i] = squaresLeftOpen(seen);
    residuals.push(residual.map((value) => value / left[i]));
    last = seen;
  });
  const mean = (values, i, j) => ((left[j] / left[i]) * values[i][j] + (left[i] / left[j]) * values[j][i]) / 2;
  const less = lessNoise(release, residuals);
  const pair = (i, j) => {
    const r = mean(slopes, i, j);
    const clipping = Math.hypot(mean(clip, i, j), (r / 2) * Math.hypot(unsure[i], unsure[j]));
    const privacy = mean(noise, i, j) * less(i, j, r);
    const identified = known[i][j] && known[j][i] && [r, privacy, clipping].every(Number.isFinite) && Math.abs(r) < LARGEST;
    const partial = Number.isFinite(r) ? Math.min(Math.max(r, -1), 1) : 0;
    const sampling = (1 - partial ** 2) * Math.sqrt(last.designEffect / rowsLeft(last, last.rows));
    const clipped = clip[i][j] + clip[j][i] + unsure[i] + unsure[j] === 0 ? 0 : 1;
    const se = Math.hypot(sampling, Number.isFinite(privacy) ? privacy : 1, Number.isFinite(clipping) ? clipping : clipped);
    if (!identified) return { partial, se, lower: -1, upper: 1, identified };
    const reach = (quantile(confidence, last.degrees) * se) / (1 - partial ** 2);
    const [lower, upper] = [-reach, reach].map((step) => Math.tanh(Math.atanh(partial) + step));
    return { partial, se, lower, upper, identified };
  };
  const whole = { partial: 1, se: 0, lower: 1, upper: 1, identified: true };
  const pairs = places.map((_, i) => places.map((_, j) => (i === j ? whole : pair(i, j))));
  return { names: places.map((j) => encoded[j].name), pairs };
}

// What the noise's standard error of a partial correlation is of the mean of those of both regressions.
function lessNoise(release, residuals) {
  const told = residuals.map((one) => one.every(Number.isFinite));
  const { products, excess, forms } = noiseLaw(release.evidence, residuals.map((one, i) => (told[i] ? one : one.map(() => 0))));
  const power = (i, j, a, b) => (excess === 0 ? 0 : excess * forms[i].reduce((total, value, k) => total + value ** a * forms[j][k] ** b, 0));
  const own = (i) => products[i][i];
  const whole = (i) => 2 * own(i) ** 2 + power(i, i, 2, 2);
  const first = (i, mixed, ends, r) => Math.sqrt(Math.max(mixed + 2 * r * ends + r ** 2 * whole(i), 0));
  return (i, j, r) => {
    if (!told[i] || !told[j]) return 1;
    const mixed = own(i) * own(j) + products[i][j] ** 2 + power(i, j, 2, 2);
    const [ends, others] = [2 * own(i) * products[i][j] + power(i, j, 3, 1), 2 * own(j) * products[i][j] + power(j, i, 3, 1)];
    const apart = 2 * products[i][j] ** 2 + power(i, j, 2, 2);
    const both = mixed + r * (ends + others) + (r ** 2 / 4) * (whole(i) + whole(j) + 2 * apart);
    return (2 * Math.sqrt(Math.max(both, 0))) / (first(i, mixed, ends, r) + first(j, mixed, others, r));
  };
}
return { partials };
})();

const module_heatmap = (() => {
// Correlations, or partial ones, as a heat map: orange is positive, blue negative, strength is opacity, so that it follows the page's colours
// and prints.

const { failed, relation } = module_design;
const { draw, dropDown, make, shorten } = module_dom;
const { partials } = module_partial;
const { partialCode } = module_python;

const SMALLEST = 11; // pixels of a cell: room for the name of its row
const LARGEST = 26;
const NAMED = 20; // letters of a name
const MANY = 120; // columns, beyond which only those of the model are drawn
const MANY_PARTIAL = 40; // ... and beyond which a reader would wait for partial correlations: each column has a regression of its own

// { root, follow }: `follow` draws again what depends on the model, or on its confidence level.
function heatmap(release, found, choice) {
  const view = { which: found.names.length > MANY ? "model" : "all", kind: "plain", hide: false };
  const said = make("p", { class: "readout", role: "status" });
  const [above, frame, below] = [make("div", {}), make("div", { class: "scroll map" }), make("div", {})];
  const redraw = () => {
    const wanted = (j) => j === choice.target || choice.features.has(release.encoded[j].column);
    const places = [...found.names.keys()].filter((k) => view.which === "all" || wanted(k + 1));
    const { words = [], picture, code } = view.kind === "plain" ? { picture: plainly(found, places) } : partly(release, places, choice.confidence);
    view.confidence = choice.confidence;
    above.replaceChildren(...words.map((text) => small(text)));
    frame.replaceChildren(...(picture ? [drawing(picture, view.hide, said)] : []));
    below.replaceChildren(...(code ? [small("In Python: ", make("code", {}, code))] : []));
    said.textContent = picture ? POINT : "";
  };
  const choose = (name) => (value) => {
    view[name] = value;
    redraw();
  };
  const hide = (event) => {
    view.hide = event.target.checked;
    redraw();
  };
  const which = [["all", `all ${found.names.length}`], ["model", "those of the model"]];
  const tools = make(
    "div", { class: "row tools" }, dropDown("Columns", which, view.which, choose("which"), { id: "which" }),
    dropDown("Show", [["plain", "correlations"], ["partial", "partial correlations"]], view.kind, choose("kind"), { id: "kind" }),
    make(
      "label", { class: "feature" }, make("input", { type: "checkbox", id: "hide", onchange: hide }),
      make("span", {}, "hide what noise alone could have made (below two standard errors)"),
    ),
  );
  redraw();
  return {
    root: make("div", { class: "heat" }, tools, scale(), above, frame, said, below),
    follow: () => (view.which === "model" || (view.kind === "partial" && view.confidence !== choice.confidence)) && redraw(),
  };
}

const POINT = "Point at a cell or tap on it, or move through the cells with the arrow keys.";

const small = (...words) => make("p", { class: "small" }, ...words);

// What a picture shows: names, a title, and for each pair { r, sure, words }, or { lost, words } where nothing is known.
const plainly = (found, places) => ({
  names: places.map((k) => found.names[k]),
  title: "Correlations",
  pairs: places.map((row) => places.map((column) => {
    const [r, se] = [found.correlation[row][column], found.se[row][column]];
    return { r, sure: row === column || Math.abs(r) >= 2 * se, words: row === column ? r.toFixed(3) : `${r.toFixed(3)}, standard error ${se.toFixed(3)}` };
  })),
});

// Of each pair given all the other columns that are shown: a picture, its line of Python, and words; these alone where there are too many
// columns, or too few.
function partly(release, places, confidence) {
  const all = places.map((k) => k + 1); // in the matrix, whose first column is the intercept
  const say = (words) => ({ words: [words] });
  if (all.length < 2) return say("This needs two columns or more.");
  if (all.length > MANY_PARTIAL) return say(`There are ${all.length} columns. Show those of the model, and choose ${MANY_PARTIAL} or fewer, to see partial correlations here.`);
  const columns = new Set(all.map((j) => release.encoded[j].column));
  const computed = all.some((j) => [...columns].some((column) => relation(release, j, column) === "same cells"));
  let found = null;
  try {
    found = partials(release, all, confidence);
  } catch (problem) {
    return say(failed(problem, "This"));
  }
  const { names, pairs } = found;
  const shown = pairs.map((row, i) => row.map(({ partial, se, lower, upper, identified }, j) => {
    const ends = `${100 * confidence} % interval [${lower.toFixed(3)}, ${upper.toFixed(3)}]`;
    const words = identified ? `${partial.toFixed(3)}, standard error ${se.toFixed(3)}, ${ends}` : "not identified at this budget";
    return { r: partial, lost: !identified, sure: i === j || Math.abs(partial) >= 2 * se, words: i === j ? "1.000" : words };
  }));
  const lost = pairs.flatMap((row, i) => row.slice(0, i)).filter((pair) => !pair.identified).length;
  const others = all.length - 2;
  const given = others ? `Each pair given the other ${others === 1 ? "column" : `${others} columns`}. ` : "With two columns, nothing else is given. ";
  const crossed = lost ? `${lost} of ${(all.length * (all.length - 1)) / 2} pairs are not identified at this budget, and crossed out.` : "";
  const warned = "Some of these columns are computed from others, so partial correlations between them say little. Choose a model without such columns, and show those of the model.";
  return {
    words: [given + crossed, ...(computed ? [warned] : [])],
    picture: { names, title: "Partial correlations", pairs: shown },
    code: partialCode(release, all, confidence),
  };
}

function drawing({ names, title, pairs }, hide, said) {
  const n = names.length;
  const size = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(620 / Math.max(n, 1))));
  const letter = Math.min(11, size - 1);
  const longest = Math.max(3, ...names.map((name) => Math.min(name.length, NAMED)));
  const margin = Math.ceil(longest * letter * 0.62) + 6;
  const side = margin + n * size + 2;
  const map = draw("svg", {
    class: "heatmap", viewBox: `0 0 ${side} ${side}`, width: side, height: side, tabindex: "0", role: "img", "font-size": letter,
    "aria-label": `${title} of ${n} columns. Arrow keys move through the cells.`,
  });
  names.forEach((whole, i) => {
    const name = shorten(whole, NAMED);
    const along = margin + (i + 0.5) * size;
    map.append(
      draw("text", { x: margin - 4, y: along, dy: "0.35em", "text-anchor": "end" }, draw("title", {}, whole), name),
      draw("text", { transform: `translate(${along} ${margin - 4}) rotate(-90)`, dy: "0.35em" }, draw("title", {}, whole), name),
    );
  });
  pairs.forEach((row, i) => row.forEach(({ r, sure, lost }, j) => {
    const [x, y] = [margin + j * size, margin + i * size];
    if (lost) {
      map.append(draw("path", { class: "unknown", d: `M${x} ${y}l${size} ${size}m0 ${-size}l${-size} ${size}` }));
      return;
    }
    const strength = hide && !sure ? 0 : Math.abs(r);
    if (strength < 0.004) return;
    map.append(draw("rect", {
      class: r > 0 ? "positive" : "negative", x, y, width: size, height: size, "fill-opacity": strength.toFixed(3),
    }));
  }));
  const cursor = draw("rect", { class: "cursor", width: size, height: size, visibility: "hidden" });
  map.append(draw("rect", { class: "frame", x: margin, y: margin, width: n * size, height: n * size }), cursor);
  let at = [0, 0];
  const tell = (i, j) => {
    if (!(i >= 0 && i < n && j >= 0 && j < n)) return;
    at = [i, j];
    cursor.setAttribute("x", margin + j * size);
    cursor.setAttribute("y", margin + i * size);
    cursor.setAttribute("visibility", "visible");
    said.textContent = `${names[i]} and ${names[j]}: ${pairs[i][j].words}`;
  };
  const pointed = (event) => {
    const box = map.getBoundingClientRect();
    const unit = side / box.width;
    tell(Math.floor(((event.clientY - box.top) * unit - margin) / size), Math.floor(((event.clientX - box.left) * unit - margin) / size));
  };
  map.addEventListener("pointermove", pointed);
  map.addEventListener("click", pointed); // also a tap, after which the focus has come
  map.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    tell(...at.map((place, k) => Math.min(Math.max(place + move[k], 0), n - 1)));
  });
  map.addEventListener("focus", () => tell(...at));
  return map;
}

// What the colours mean.
function scale() {
  const steps = [-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1];
  const bar = draw("svg", { class: "scale", viewBox: "0 0 270 30", width: 270, height: 30, role: "img", "aria-label": "Blue is minus one, no colour zero, orange one" });
  steps.forEach((r, k) => {
    bar.append(draw("rect", { class: r > 0 ? "positive" : "negative", x: 30 * k, y: 0, width: 30, height: 14, "fill-opacity": Math.abs(r) }));
    if (k % 2 === 0) bar.append(draw("text", { x: 30 * k + 15, y: 27, "text-anchor": "middle" }, String(r).replace("-", "\u2212")));
  });
  bar.append(draw("rect", { class: "frame", x: 0.5, y: 0.5, width: 269, height: 13.5 }));
  return bar;
}
return { heatmap };
})();

const module_moments = (() => {
// Means and correlations with standard errors from a release. As dpgram.regression.moments and dpgram.inference.moments.

const { dot } = module_linalg;
const { noiseLaw } = module_noise;

// Of all columns but the intercept: names, means and sds in own units, correlations and their standard errors. Null without an intercept.
function moments(release) {
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
return { moments };
})();

const module_prediction = (() => {
// The predicted value for cells that a reader types, in the columns' own units.

const { neededCells } = module_encode;
const { make, shorten } = module_dom;
const { dateText, daysOf, interval, number } = module_format;

// Cells to start from: estimated means where there are any, the middle of the bounds for dates, reference levels.
function startCells(release, means) {
  const cells = Object.create(null); // a column may be named like something that every object has
  for (const column of release.declared) {
    const place = release.encoded.findIndex((e) => e.name === column.name);
    const mean = means && place >= 0 ? means.mean[place - 1] : (column.lower + column.upper) / 2;
    if (column.kind === "numeric") cells[column.name] = Math.min(Math.max(Number(mean.toPrecision(3)), column.lower), column.upper);
    else if (column.kind === "date") cells[column.name] = Math.floor(column.fill);
    else cells[column.name] = 0;
  }
  return cells;
}

// A form for the cells that `columns` are computed from, and the place for the answer. `changed` is called after every edit.
function cellForm(release, columns, cells, changed) {
  const needed = neededCells(release, columns);
  if (!needed.length) return make("p", { class: "small" }, "This model uses no column, so its prediction is the same for every row.");
  return make(
    "form", { class: "cells", "aria-label": "Cells to predict for", onsubmit: (event) => event.preventDefault() },
    needed.map((column) => {
      const note = make("span", { class: "small note" });
      const input = {
        numeric: numberInput, date: dateInput, categorical: levelInput, boolean: levelInput,
      }[column.kind](release, column, cells, note, changed);
      input.setAttribute("data-cell", column.name);
      return make("label", { class: "field" }, make("span", { class: "name", title: column.name }, shorten(column.name, 30)), input, note);
    }),
  );
}

// What becomes of a number that is not there.
function missingWords(column) {
  if (column.drops) return "missing: no prediction, because such rows did not count";
  return column.indicator ? "missing: counts as a value of its own" : `missing: counts as ${number(column.fill)}`;
}

function numberInput(release, column, cells, note, changed) {
  const say = () => {
    const value = cells[column.name];
    const outside = value !== null && (value < column.lower || value > column.upper);
    const bounds = `${number(column.lower)} to ${number(column.upper)}`;
    note.textContent = value === null ? missingWords(column) : outside ? `outside ${bounds}: counts as the nearer end` : bounds;
  };
  const input = make("input", {
    type: "number", step: "any", value: String(cells[column.name] ?? ""),
    oninput: (event) => {
      const typed = event.target.value;
      cells[column.name] = typed === "" ? null : Number(typed);
      say();
      changed();
    },
  });
  say();
  return input;
}

function dateInput(release, column, cells, note, changed) {
  const withTime = release.derived.some((d) => d.of === column.name && d.part === "hour") || column.lower % 1 !== 0 || column.upper % 1 !== 0;
  const days = cells[column.name];
  note.textContent = `${dateText(column.lower, withTime)} to ${dateText(column.upper, withTime)}, UTC`;
  return make("input", {
    type: withTime ? "datetime-local" : "date", value: days === null ? "" : dateText(days, withTime),
    oninput: (event) => {
      cells[column.name] = event.target.value === "" ? null : daysOf(event.target.value);
      changed();
    },
  });
}

function levelInput(release, column, cells, note, changed) {
  const levels = column.kind === "boolean" ? ["no", "yes"] : column.levels;
  const options = levels.map((level, k) => make("option", { value: String(k), title: level }, level));
  const box = make("select", {
    onchange: (event) => {
      cells[column.name] = event.target.value === "" ? null : Number(event.target.value);
      changed();
    },
  }, options, column.missing_level === null || column.kind === "boolean" ? make("option", { value: "" }, "(missing)") : null);
  box.value = cells[column.name] === null ? "" : String(cells[column.name]);
  return box;
}

function answer(release, found, cells) {
  const made = found.predict(cells);
  const isDate = release.declared.some((column) => column.name === found.target && column.kind === "date");
  const sure = `${100 * found.confidence} % interval`;
  const facts = [
    [`predicted ${shorten(found.target, 40)}${isDate ? ", in days since 1970" : ""}`, number(made.prediction, 6), "prediction"],
    [`mean of rows like this, ${sure}`, interval(made.mean, 6), "mean"],
    [`one new row, ${sure}`, interval(made.observation, 6), "observation"],
    ["debiased, the middle of both", number(made.debiased, 6), "debiased"],
  ];
  return make(
    "dl", { class: "badges answer" },
    facts.map(([name, value, id]) => make("div", {}, make("dt", { title: name }, name), make("dd", { "data-fact": id }, value))),
  );
}
return { startCells, cellForm, answer };
})();

const module_release = (() => {
// The release as it is embedded in the page, ready to compute with.

// Embedded are the lower halves of matrices that are symmetric.
function readRelease(data) {
  const { alone, together, tails, weighed, repaired, byNoise, spectrum } = data.evidence;
  const inference = view(alone);
  return {
    ...data,
    evidence: {
      ...data.evidence,
      alone: inference,
      together: together === null ? inference : view(together),
      tails: tails && { ...tails, first: whole(tails.first), outer: tails.outer.map(whole), clear: tails.clear.map((half) => half && whole(half)), through: rows(tails.through) },
      weighed: { matrix: whole(weighed.matrix), turn: weighed.turned ? inference.turn : null },
      repaired: whole(repaired),
      byNoise: rows(byNoise),
      spectrum: { ...spectrum, edge: spectrum.edge ?? Infinity },
    },
  };
}

// A matrix, the law of its noise, and T: the regression of T y on T X with this matrix is that of y on X with the Gram. Null is the identity.
const view = ({ matrix, law, turn }) => ({ matrix: whole(matrix), law, turn: rows(turn) });

const rows = (matrix) => matrix && matrix.map((row) => Float64Array.from(row));

function whole(half) {
  const d = half.length;
  const found = half.map((row) => {
    const filled = new Float64Array(d);
    filled.set(row);
    return filled;
  });
  for (let i = 0; i < d; i++) for (let j = i + 1; j < d; j++) found[i][j] = found[j][i];
  return found;
}
return { readRelease };
})();

const module_spectrum_view = (() => {
// The spectrum as a picture: eigenvalues from the largest down, and the edge up to which noise alone reaches.

const { draw, make } = module_dom;
const { number } = module_format;

const HEIGHT = 260;
const FOOT = 28;

function spectrumView(found) {
  const { values, edge, hidden } = found;
  const all = Number.isFinite(edge) ? [...values, edge] : values;
  // A logarithm beyond `linear`, which zero and small negative values need.
  const linear = Math.max(Math.min(...all.map(Math.abs).filter((v) => v > 0)), Math.max(...all.map(Math.abs)) * 1e-6) || 1;
  const bend = (v) => Math.asinh(v / linear / 2);
  const [low, high] = [Math.min(0, ...all.map(bend)), Math.max(0, ...all.map(bend))];
  const room = 0.06 * (high - low || 1);
  const y = (v) => FOOT / 2 + ((HEIGHT - FOOT) * (high + room - bend(v))) / (high - low + 2 * room);
  const x = (k) => `${(4 + (92 * (k + 0.5)) / values.length).toFixed(3)}%`;
  const seen = values.filter((_, k) => !hidden[k]).length;
  const words = `${seen} of ${values.length} directions stand out from the noise; the edge is ${number(edge, 4)}.`;
  const picture = draw("svg", { class: "spectrum", height: HEIGHT, role: "img", "aria-label": `Eigenvalues of the released matrix. ${words}` });
  axisValues(low, high, linear).forEach((value) => picture.append(
    draw("line", { class: value === 0 ? "zero" : "grid", x1: "0", x2: "100%", y1: y(value), y2: y(value) }),
    draw("text", { class: "axis", x: "100%", y: y(value) - 3, "text-anchor": "end" }, number(value, 3)),
  ));
  if (Number.isFinite(edge)) {
    picture.append(
      draw("line", { class: "edge", x1: "0", x2: "100%", y1: y(edge), y2: y(edge) }),
      draw("text", { class: "edge", x: "0", y: y(edge) - 5 }, `noise edge ${number(edge, 4)}`),
    );
  }
  const radius = values.length > 150 ? 2 : values.length > 60 ? 3 : 4;
  values.forEach((value, k) => picture.append(draw(
    "circle", { class: hidden[k] ? "hidden" : "stands", cx: x(k), cy: y(value), r: radius },
    draw("title", {}, `eigenvalue ${k + 1}: ${number(value)}${hidden[k] ? ", within the noise" : ""}`),
  )));
  return make(
    "figure", { class: "spectrum" }, picture,
    make(
      "figcaption", {}, make("span", { class: "key" }, make("i", { class: "dot sure" }), "stands out"),
      make("span", { class: "key" }, make("i", { class: "dot" }), "noise alone could have made it"), make("span", { id: "edge-words" }, ` ${words} ${found.words}`),
    ),
    make("details", {}, make("summary", {}, "The eigenvalues as numbers"), make("p", { class: "list" }, values.map((v) => number(v)).join(", "))),
  );
}

// Powers of ten, and zero, between two bent values; every second or third where there are many.
function axisValues(low, high, linear) {
  const largest = (bent) => 2 * linear * Math.sinh(Math.abs(bent));
  const powers = (bent) => {
    const found = [];
    for (let k = Math.floor(Math.log10(largest(bent))); bent !== 0 && 10 ** k > linear; k--) found.push(10 ** k);
    return found.filter((_, k) => k % Math.ceil(found.length / 5) === 0);
  };
  return [0, ...powers(high), ...(low < -1e-9 ? powers(low).map((v) => -v).slice(0, 1) : [])];
}
return { spectrumView };
})();

const module_theme = (() => {
// Light or dark: as the system says, until the reader says otherwise. Nothing is stored.

const ORDER = ["system", "light", "dark"];

function themeButton(button) {
  let now = 0;
  button.addEventListener("click", () => {
    now = (now + 1) % ORDER.length;
    const theme = ORDER[now];
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Colours: ${theme}`;
    button.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  });
}
return { themeButton };
})();

const module_main = (() => {
// The page: reads the embedded release, draws everything once, and a model again after every choice.

const { chooser, startChoice } = module_chooser;
const { coefficientTable, factList, noteList, picture, testTable, viewChoices } = module_coefficients;
const { controlsView, differenceView } = module_controls;
const { columnsOf, failed, ModelError } = module_design;
const { byId, make } = module_dom;
const { findBootstrap, fit } = module_fit;
const { heatmap } = module_heatmap;
const { moments } = module_moments;
const { answer, cellForm, startCells } = module_prediction;
const { codeBox, pythonCode } = module_python;
const { readRelease } = module_release;
const { spectrumView } = module_spectrum_view;
const { themeButton } = module_theme;

const PATIENCE = 100; // coefficients that are fitted before a reader notices

function start() {
  const release = readRelease(JSON.parse(byId("release").textContent));
  const means = moments(release);
  const choice = startChoice(release);
  const cells = startCells(release, means);
  const map = means && heatmap(release, means, choice);
  const said = make("div", { role: "status", "aria-live": "polite" });
  let found = null;
  const views = viewChoices(choice, () => found && show());

  const predict = () => {
    said.replaceChildren(...(found ? [answer(release, found, cells)] : []));
    byId("python").replaceChildren(...codeBox(pythonCode(release, choice, cells)));
  };
  const show = () => {
    byId("picture").replaceChildren(picture(release, found, choice));
    byId("table").replaceChildren(coefficientTable(found, choice), ...[testTable(found)].filter(Boolean));
  };
  const refit = () => {
    const columns = columnsOf(release).filter((column) => choice.features.has(column));
    try {
      found = fit(release, choice.target, columns, options(release, choice, columns));
    } catch (problem) {
      found = null;
      byId("facts").replaceChildren(make("p", { class: "warning" }, failed(problem, "This model")));
      ["picture", "table", "notes"].forEach((id) => byId(id).replaceChildren());
      ["difference-of", "moves"].forEach((id) => byId(id).replaceChildren(make("p", { class: "small" }, "There is no model to show.")));
    }
    views.hidden = !found;
    if (found) {
      byId("facts").replaceChildren(factList(release, found));
      byId("notes").replaceChildren(noteList(found));
      show();
      byId("difference-of").replaceChildren(differenceView(release, found, choice));
      byId("moves").replaceChildren(controlsView(release, found, choice));
    }
    byId("predict").replaceChildren(said, cellForm(release, columns, cells, predict));
    predict();
    map?.follow();
  };

  // A large fit takes seconds: the page first says so, then computes.
  const changed = () => {
    const many = release.encoded.filter((e) => choice.features.has(e.column)).length > PATIENCE;
    if (!many) return refit();
    byId("facts").replaceChildren(make("p", {}, "Computing \u2026"));
    return setTimeout(refit, 30);
  };

  byId("views").replaceChildren(views);
  themeButton(byId("theme"));
  byId("spectrum").replaceChildren(spectrumView(release.evidence.spectrum));
  byId("heatmap").replaceChildren(map ? map.root : make("p", {}, "Correlations need the intercept column, but the release was made without one."));
  byId("chooser").replaceChildren(chooser(release, choice, changed));
  changed();
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
}

// Bootstrap intervals are there for a few models only; for the others the page says so.
function options(release, { confidence, intervals, intercept, target }, columns) {
  if (intervals !== "bootstrap") return { confidence, intervals, intercept };
  const names = [...(intercept && release.intercept ? [release.encoded[0].name] : []),
    ...release.encoded.filter((e) => columns.includes(e.column)).map((e) => e.name)];
  const stored = findBootstrap(release, names, release.encoded[target].name, confidence);
  if (!stored) throw new ModelError(`Bootstrap intervals are not computed here. This page has them for ${kept(release)}.`);
  return { confidence, intervals, intercept };
}

const kept = (release) => release.bootstrap.map((one) => `${one.target} on all other columns at ${100 * one.confidence} %`).join(", ");

if (typeof document !== "undefined") start();
return {  };
})();
