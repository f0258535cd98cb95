// Correlations, or partial ones, as a heat map: orange is positive, blue negative, strength is opacity, so that it follows the page's colours
// and prints.

import { failed, relation } from "./design.js";
import { draw, dropDown, make, shorten } from "./dom.js";
import { partials } from "./partial.js";
import { partialCode } from "./python.js";

const SMALLEST = 11; // pixels of a cell: room for the name of its row
const LARGEST = 26;
const NAMED = 20; // letters of a name
const MANY = 120; // columns, beyond which only those of the model are drawn
const MANY_PARTIAL = 40; // ... and beyond which a reader would wait for partial correlations: each column has a regression of its own

// { root, follow }: `follow` draws again what depends on the model, or on its confidence level.
export function heatmap(release, found, choice) {
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
