// Correlations as a heat map: orange is positive, blue negative, strength is opacity, so that it follows the page's colours and prints.

import { draw, dropDown, make, shorten } from "./dom.js";

const SMALLEST = 11; // pixels of a cell: room for the name of its row
const LARGEST = 26;
const NAMED = 20; // letters of a name
const MANY = 120; // columns, beyond which only those of the model are drawn

// { root, follow }: `follow` draws again where only the model's columns are shown.
export function heatmap(release, found, choice) {
  const view = { which: found.names.length > MANY ? "model" : "all", hide: false };
  const said = make("p", { class: "readout", role: "status" }, "Point at a cell, or move through the cells with the arrow keys.");
  const frame = make("div", { class: "scroll map" });
  const redraw = () => {
    const wanted = new Set([release.encoded[choice.target].column, ...choice.features]);
    const places = [...found.names.keys()].filter((k) => view.which === "all" || wanted.has(release.encoded[k + 1].column));
    frame.replaceChildren(drawing(found, places, view.hide, said));
  };
  const choose = (value) => {
    view.which = value;
    redraw();
  };
  const hide = (event) => {
    view.hide = event.target.checked;
    redraw();
  };
  const which = [["all", `all ${found.names.length}`], ["model", "those of the model"]];
  const tools = make(
    "div", { class: "row tools" }, dropDown("Columns", which, view.which, choose, { id: "which" }),
    make(
      "label", { class: "feature" }, make("input", { type: "checkbox", id: "hide", onchange: hide }),
      make("span", {}, "hide what noise alone could have made (below two standard errors)"),
    ),
  );
  redraw();
  return { root: make("div", { class: "heat" }, tools, scale(), frame, said), follow: () => view.which === "model" && redraw() };
}

function drawing(found, places, hide, said) {
  const n = places.length;
  const size = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(620 / Math.max(n, 1))));
  const letter = Math.min(11, size - 1);
  const longest = Math.max(3, ...places.map((k) => Math.min(found.names[k].length, NAMED)));
  const margin = Math.ceil(longest * letter * 0.62) + 6;
  const side = margin + n * size + 2;
  const map = draw("svg", {
    class: "heatmap", viewBox: `0 0 ${side} ${side}`, width: side, height: side, tabindex: "0", role: "img", "font-size": letter,
    "aria-label": `Correlations of ${n} columns. Arrow keys move through the cells.`,
  });
  places.forEach((k, i) => {
    const name = shorten(found.names[k], NAMED);
    const along = margin + (i + 0.5) * size;
    map.append(
      draw("text", { x: margin - 4, y: along, dy: "0.35em", "text-anchor": "end" }, draw("title", {}, found.names[k]), name),
      draw("text", { transform: `translate(${along} ${margin - 4}) rotate(-90)`, dy: "0.35em" }, draw("title", {}, found.names[k]), name),
    );
  });
  places.forEach((row, i) => places.forEach((column, j) => {
    const r = found.correlation[row][column];
    const doubtful = row !== column && Math.abs(r) < 2 * found.se[row][column];
    const strength = hide && doubtful ? 0 : Math.abs(r);
    if (strength < 0.004) return;
    map.append(draw("rect", {
      class: r > 0 ? "positive" : "negative", x: margin + j * size, y: margin + i * size, width: size, height: size, "fill-opacity": strength.toFixed(3),
    }));
  }));
  const cursor = draw("rect", { class: "cursor", width: size, height: size, visibility: "hidden" });
  map.append(draw("rect", { class: "frame", x: margin, y: margin, width: n * size, height: n * size }), cursor);
  let at = [0, 0];
  const tell = (i, j) => {
    if (!(i >= 0 && i < n && j >= 0 && j < n)) return;
    at = [i, j];
    const [row, column] = [places[i], places[j]];
    cursor.setAttribute("x", margin + j * size);
    cursor.setAttribute("y", margin + i * size);
    cursor.setAttribute("visibility", "visible");
    const error = row === column ? "" : `, standard error ${found.se[row][column].toFixed(3)}`;
    said.textContent = `${found.names[row]} and ${found.names[column]}: ${found.correlation[row][column].toFixed(3)}${error}`;
  };
  map.addEventListener("pointermove", (event) => {
    const box = map.getBoundingClientRect();
    const unit = side / box.width;
    tell(Math.floor(((event.clientY - box.top) * unit - margin) / size), Math.floor(((event.clientX - box.left) * unit - margin) / size));
  });
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
