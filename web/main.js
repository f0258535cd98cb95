// The page: reads the embedded release, draws everything once, and a model again after every choice.

import { chooser, startChoice } from "./chooser.js";
import { coefficientTable, factList, noteList, picture, testTable, viewChoices } from "./coefficients.js";
import { controlsView, differenceView } from "./controls.js";
import { columnsOf, failed, ModelError } from "./design.js";
import { byId, make } from "./dom.js";
import { findBootstrap, fit } from "./fit.js";
import { heatmap } from "./heatmap.js";
import { moments } from "./moments.js";
import { answer, cellForm, startCells } from "./prediction.js";
import { codeBox, pythonCode } from "./python.js";
import { readRelease } from "./release.js";
import { spectrumView } from "./spectrum_view.js";
import { themeButton } from "./theme.js";

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
