// How one coefficient moves as the other features enter a regression, and how far two coefficients are apart. As dpgram.controls and
// Fit.t_test.

import { bars, NAMED, surely } from "./coefficients.js";
import { columnsOf, failed, INTERCEPT, placesOf } from "./design.js";
import { dropDown, make, shorten } from "./dom.js";
import { fit } from "./fit.js";
import { interval, number, probability } from "./format.js";
import { controlsCode, differenceCode } from "./python.js";

const MANY = 30; // regressions, beyond which nobody reads the picture
const SLOW = 40; // coefficients of a model, beyond which a reader waits for its steps, and is told so
const MOST = 100; // ... and beyond which the wait is too long

// The regression of the target on the column of a coefficient alone, then with one more of the other features at a time, in their order.
export function steps(release, target, columns, followed, options) {
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
export function controlsView(release, found, choice) {
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
export function differenceView(release, found, choice) {
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
