// The fitted model as facts, as a picture of coefficients with intervals, and as a table.

import { dropDown, draw, make, shorten } from "./dom.js";
import { interval, number, probability, ticks } from "./format.js";
import { INTERCEPT } from "./design.js";

export const NAMED = 30; // letters of a name
const LONG = 260; // letters of a note that are shown before the reader asks for all of them
const LOST = "not identified at this budget";

const whole = (value) => Math.round(value).toLocaleString("en");

// How many rows counted, as far as the release tells.
export function rowsThatCounted({ counted, countsAtLeast }) {
  if (countsAtLeast) return `at least about ${whole(counted.rows)}`;
  const rows = whole(counted.rows);
  return counted.rowsSd > 0 ? `about ${rows === "1" ? "none" : rows} (s.e. ${whole(counted.rowsSd)})` : rows; // no estimate is below one
}

export function factList(release, found) {
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
export function ordered(found, order) {
  const slopes = [...found.coefficients];
  if (order === "size") slopes.sort((a, b) => Number(b.identified) - Number(a.identified) || Math.abs(b.z) - Math.abs(a.z));
  return slopes;
}

export function viewChoices(choice, redraw) {
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

export function picture(release, found, choice) {
  const shown = ordered(found, choice.order).filter((c) => c.name !== INTERCEPT);
  const factor = (c) => (choice.scale === "own" ? 1 : spanOf(release.encoded[c.place]));
  if (!shown.length) return make("p", { class: "small" }, "The intercept alone: see the table.");
  const unit = choice.scale === "own" ? "coefficient, in own units" : `change of ${found.target} over the whole declared range of a column (or from 0 to 1)`;
  return bars(shown, factor, legend(found), unit);
}

// Coefficients with their intervals below each other, each multiplied by its factor. Percentages instead of pixels: the picture follows the
// width of the page, on a phone and on paper. Where the axis need not have its zero it shows differences between the lines better.
export function bars(shown, factor, caption, unit, withZero = true) {
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
export const surely = (found) =>
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

export function coefficientTable(found, choice) {
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

export function testTable(found) {
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

export function noteList(found) {
  const words = [
    "coef: debiased coefficients, without the bias that the noise would cause. std err, z, P>|z| and the interval are about them. shrunk: coefficients with the smallest expected error. Predictions use them.",
    ...(found.intervals === "bootstrap" ? ["These intervals were simulated when this page was made. They are not computed again here."] : []),
    ...found.notes,
  ];
  const folded = (text) =>
    text.length <= LONG ? text : make("details", {}, make("summary", {}, `${text.slice(0, LONG - 40)} \u2026`), text);
  return make("ul", { class: "notes" }, words.map((text) => make("li", { class: /^(NOT|CONDITIONAL|Not)/.test(text) ? "strong" : null }, folded(text))));
}
