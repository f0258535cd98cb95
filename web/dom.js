// Elements from plain descriptions. Text is always set as text, never parsed: a column may be named like a tag.

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes (`on...` ones are listeners) and children, which are elements or text.
export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

// The same for drawings.
export const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

// A labelled drop-down; `choices` are [value, words] pairs.
export function dropDown(label, choices, value, change, attributes = {}) {
  const options = choices.map(([one, words]) => make("option", { value: one, selected: one === value, title: words }, words));
  const box = make("select", { ...attributes, onchange: (event) => change(event.target.value) }, options);
  box.value = value;
  return make("label", { class: "field" }, make("span", {}, label), box);
}

// Part of a name, for places where the whole does not fit: its start and its end, because levels of a category differ at the end. The whole
// belongs in a title.
export function shorten(name, length) {
  const letters = Array.from(name);
  if (letters.length <= length) return name;
  const end = Math.max(3, Math.floor(length / 4));
  return `${letters.slice(0, length - 1 - end).join("")}\u2026${letters.slice(-end).join("")}`;
}
