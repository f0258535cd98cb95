// The spectrum as a picture: eigenvalues from the largest down, and the edge up to which noise alone reaches.

import { draw, make } from "./dom.js";
import { number } from "./format.js";

const HEIGHT = 260;
const FOOT = 28;

export function spectrumView(found) {
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
