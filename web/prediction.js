// The predicted value for cells that a reader types, in the columns' own units.

import { neededCells } from "./encode.js";
import { make, shorten } from "./dom.js";
import { dateText, daysOf, interval, number } from "./format.js";

// Cells to start from: estimated means where there are any, the middle of the bounds for dates, reference levels.
export function startCells(release, means) {
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
export function cellForm(release, columns, cells, changed) {
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

export function answer(release, found, cells) {
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
