// How one coefficient moves as the other features enter a regression, and how far two coefficients are apart. As dpgram.controls and
// Fit.t_test.

import { bars, NAMED } from "./coefficients.js";
import { columnsOf, INTERCEPT } from "./design.js";
import { dropDown, make, shorten } from "./dom.js";
import { fit } from "./fit.js";
import { interval, number, probability } from "./format.js";
import { controlsCode, differenceCode } from "./python.js";

const MANY = 30; // regressions, beyond which nobody reads the picture

// The regression of the target on the column of a coefficient alone, then with one more of the other features at a time, in their order.
export function steps(release, target, columns, followed, options) {
  const { column } = release.encoded[followed];
  const others = columns.filter((one) => one !== column);
  return [null, ...others].map((added, k) => {
    const found = fit(release, target, [column, ...others.slice(0, k)], options);
    const { coefficient, se, lower, upper, identified } = found.coefficients.find((c) => c.place === followed);
    return { name: added === null ? "no controls" : `+ ${added}`, coefficient, se, lower, upper, identified };
  });
}

const slopesOf = (found) => found.coefficients.filter((c) => c.name !== INTERCEPT);

// The part of the page about the model that was `found`. What was chosen last stays chosen where the model still has it.
export function controlsView(release, found, choice) {
  const slopes = slopesOf(found).filter((c) => !release.encoded[c.place].absent);
  const columns = columnsOf(release).filter((column) => choice.features.has(column));
  if (columns.length < 2) return make("p", { class: "small" }, "This needs a model of two features or more.");
  if (columns.length > MANY) return make("p", { class: "small" }, `The model has ${columns.length} features. Choose ${MANY} or fewer to see this.`);
  const at = slopes.find((c) => c.place === choice.followed) ?? slopes[0];
  const result = make("div", {});
  const show = (place) => {
    choice.followed = Number(place);
    result.replaceChildren(...drawn(release, found, choice, columns));
  };
  const named = slopes.map((c) => [String(c.place), c.name]);
  show(at.place);
  return make("div", {}, make("div", { class: "row tools" }, dropDown("Coefficient", named, String(at.place), show, { id: "followed" })), result);
}

function drawn(release, found, choice, columns) {
  const options = { confidence: found.confidence, intervals: simple(found.intervals), intercept: choice.intercept };
  const moved = steps(release, choice.target, columns, choice.followed, options);
  const { name } = release.encoded[choice.followed];
  const tail = (1 - found.confidence) / 2;
  const heads = ["features", "coef", "std err", `[${number(tail, 4)}`, `${number(1 - tail, 4)}]`];
  const rows = moved.map((step) => make(
    "tr", { class: step.identified ? null : "lost" }, make("th", { scope: "row", title: step.name }, shorten(step.name, NAMED)),
    [step.coefficient, step.se, ...(step.identified ? [step.lower, step.upper] : [-Infinity, Infinity])].map((value, k) =>
      make("td", { "data-column": heads[k + 1] }, number(value))),
  ));
  const caption = `The coefficient of ${name}: first without controls, then with one feature more in every line. ${100 * found.confidence} % intervals.`;
  return [
    bars(moved, () => 1, caption, `coefficient of ${name} in the regression of ${found.target}, in own units`),
    make(
      "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The coefficient at each step" },
      make("table", { class: "numbers", id: "steps" }, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)),
    ),
    inPython(controlsCode(release, choice)),
  ];
}

const inPython = (code) => make("p", { class: "small" }, "In Python: ", make("code", {}, code));

// Simulated intervals are there for whole models only.
const simple = (intervals) => (intervals === "bootstrap" ? "auto" : intervals);

// One coefficient less another.
export function differenceView(release, found, choice) {
  const slopes = slopesOf(found);
  if (slopes.length < 2) return make("p", { class: "small" }, "This needs a model of two coefficients or more.");
  const places = new Set(slopes.map((c) => c.place));
  const [first, second] = pairOf(release, slopes);
  if (!places.has(choice.first) || !places.has(choice.second)) [choice.first, choice.second] = [first.place, second.place];
  const said = make("div", { id: "difference", role: "status" });
  const show = () => said.replaceChildren(...words(found, choice));
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
  const columnOf = (c) => release.encoded[c.place].column;
  const first = slopes.find((c) => slopes.some((other) => other !== c && columnOf(other) === columnOf(c))) ?? slopes[0];
  return [first, slopes.find((c) => c !== first && columnOf(c) === columnOf(first)) ?? slopes.find((c) => c !== first)];
}

function words(found, { first, second }) {
  const [one, other] = [first, second].map((place) => found.coefficients.find((c) => c.place === place).name);
  if (first === second) return [make("p", {}, "Choose two coefficients.")];
  const weights = found.coefficients.map((c) => Number(c.place === first) - Number(c.place === second));
  const apart = found.contrast(weights);
  const test = apart.identified ? `, P>|z| ${probability(apart.pValue)}` : "";
  const level = apart.identified ? `${100 * found.confidence} % interval ` : "";
  const result = `${number(apart.estimate)} (std err ${number(apart.se)}), ${level}${interval([apart.lower, apart.upper])}${test}`;
  return [make("p", {}, `${one} \u2212 ${other} = ${result}`), inPython(differenceCode(one, other))];
}
