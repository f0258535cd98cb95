// What to explain, by what, and how sure to be. Redraws itself when the target changes; calls `changed` after every choice.

import { columnsOf, defaultFeatures, placesOf, relation, targets } from "./design.js";
import { dropDown, make } from "./dom.js";

const CONFIDENCES = [0.5, 0.8, 0.9, 0.95, 0.99];
const INTERVALS = [
  ["auto", "auto: Wald, Fieller where weak"],
  ["wald", "Wald"],
  ["fieller", "Fieller"],
];

const WIDE = 150; // coefficients, beyond which a fit takes seconds
const FEW = 20;

// The model that `dpgram regress` would fit, or a small one where that would keep the reader waiting.
export function startChoice(release) {
  const numeric = targets(release).filter((j) => release.declared.some((c) => c.name === release.encoded[j].name && c.kind === "numeric"));
  const target = numeric[0] ?? targets(release)[0];
  const usual = defaultFeatures(release, target);
  const features = release.encoded.length > WIDE ? usual.slice(0, FEW) : usual;
  return {
    target, features: new Set(features), confidence: 0.95, intervals: "auto", intercept: release.intercept, order: "declared",
    scale: "range",
  };
}

export function chooser(release, choice, changed) {
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
