// The chosen model as a few lines of Python that give the same numbers.

import { columnsOf, defaultFeatures, placesOf } from "./design.js";
import { neededCells } from "./encode.js";
import { make } from "./dom.js";
import { dateText } from "./format.js";

const text = (value) => JSON.stringify(value); // a JSON string is a Python string

export function pythonCode(release, choice, cells) {
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
export function controlsCode(release, choice) {
  const { name, column } = release.encoded[choice.followed];
  const listed = (names) => `[${names.map(text).join(", ")}]`;
  const others = columnsOf(release).filter((one) => choice.features.has(one) && one !== column);
  const levels = name === column ? [] : placesOf(release, column).map((j) => release.encoded[j].name).filter((one) => one !== name);
  const features = levels.length ? [`features=${listed(levels)}`] : [];
  const given = ["release", text(release.encoded[choice.target].name), text(name), listed(others), ...features, ...optionsOf(release, choice)];
  return `dpgram.controls(${given.join(", ")})`;
}

// Partial correlations of whole columns, which are at these places of the matrix.
export function partialCode(release, places, confidence) {
  const columns = [...new Set(places.map((j) => release.encoded[j].column))];
  const listed = columns.length === columnsOf(release).length ? "" : `, [${columns.map(text).join(", ")}]`;
  return `dpgram.partial_correlations(release${listed}${confidence === 0.95 ? "" : `, confidence=${confidence}`})`;
}

// The difference of two coefficients, by their names.
export const differenceCode = (first, second) => `fit.t_test({${text(first)}: 1, ${text(second)}: -1})`;

function cell(column, value) {
  if (value === null || value === column.missing_level) return "None";
  if (column.kind === "date") return text(dateText(value, true));
  if (column.kind === "boolean") return value ? "True" : "False";
  if (column.kind === "numeric") return String(value);
  if (!column.numbers) return text(column.levels[value]);
  const level = column.levels[value]; // "other" is a number that no category has
  return level === "other" ? String(Math.max(...column.levels.map(Number).filter(Number.isFinite)) + 1) : level;
}

export function codeBox(code) {
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
