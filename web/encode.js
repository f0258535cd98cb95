// Cells as a reader types them, encoded as the release's rows were: clamped to the declared bounds, missing ones filled, derived columns
// computed from them. As dpgram.encoding.

import { apply, solve, transpose } from "./linalg.js";

const DAY = 86400; // seconds

// What each coefficient is multiplied by, in own units. `cells` maps a declared column to a number (days for a date, 0 or 1 for a truth
// value, the place among the levels of a category) or null, a missing cell.
export function ownFeatures(release, plan, cells) {
  const scaled = new Float64Array(release.encoded.length);
  if (release.intercept) scaled[0] = 1;
  const cell = (column) => clamp(column, cells[column.name]);
  if (neededCells(release, columnsAt(release, plan.places)).some((column) => column.drops && Number.isNaN(cell(column)))) {
    return new Float64Array(plan.places.length).fill(NaN); // such rows did not count
  }
  const used = new Set(columnsAt(release, plan.places));
  for (const name of used) {
    const own = ownColumns(release, name, cells);
    release.encoded.forEach((e, j) => {
      if (e.column === name) scaled[j] = Math.min(Math.max((own.shift() - e.centre) / e.half, -1), 1);
    });
  }
  const found = solve(transpose(plan.toOwn), apply(transpose(plan.regressors), scaled));
  return found.map((value) => plan.labelUnit * value);
}

const columnsAt = (release, places) => places.map((j) => release.encoded[j].column).filter((name) => name !== null);

// Declared columns that a set of features is computed from.
export function neededCells(release, columns) {
  const needed = new Set(release.encoded.filter((e) => columns.includes(e.column)).flatMap((e) => e.sources));
  return release.declared.filter((column) => needed.has(column.name));
}

// A declared or derived column in its own units, one number for each of its encoded columns.
function ownColumns(release, name, cells) {
  const derived = release.derived.find((one) => one.name === name);
  if (derived) {
    const values = COMPUTED[derived.kind](derived, (parent) => clamp(declaredColumn(release, parent), cells[parent]));
    const filled = values.some((value) => Number.isNaN(value)) ? derived.fill : values;
    return filled.map((value) => Math.min(Math.max(value, derived.lower), derived.upper));
  }
  const column = declaredColumn(release, name);
  const value = clamp(column, cells[name]);
  const found = Number.isNaN(value) ? column.fill : value;
  if (column.kind !== "categorical") return column.indicator ? [found, Number(Number.isNaN(value))] : [found];
  return column.levels.slice(1).map((_, k) => (found === k + 1 ? 1 : 0));
}

const declaredColumn = (release, name) => release.declared.find((column) => column.name === name);

// The cell that a column's kind allows, or NaN where it is missing.
export function clamp(column, value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return column.missing_level ?? NaN;
  if (column.kind === "categorical" || column.kind === "boolean") return value;
  return Math.min(Math.max(value, column.lower), column.upper);
}

const COMPUTED = {
  product(derived, cell) {
    const [first, second] = derived.factors.map(({ column, levels }) => {
      const value = cell(column);
      return levels === null ? [value] : levels.map((level) => (Number.isNaN(value) ? NaN : Number(value === level)));
    });
    return first.flatMap((a) => second.map((b) => a * b));
  },
  power(derived, cell) {
    const x = cell(derived.of);
    let found = x;
    for (let k = 1; k < derived.exponent; k++) found *= x;
    return [found];
  },
  log: (derived, cell) => [Math.log(cell(derived.of))],
  log1p: (derived, cell) => [Math.log1p(cell(derived.of))],
  interval(derived, cell) {
    const x = cell(derived.of);
    const [low, high] = [derived.from ?? -Infinity, derived.to ?? Infinity];
    return [Number.isNaN(x) ? NaN : Number(low <= x && x < high)];
  },
  "date-part"(derived, cell) {
    const value = datePart(cell(derived.of), derived.part);
    if (derived.wanted === null) return [value];
    return derived.wanted.map((level) => (Number.isNaN(value) ? NaN : Number(value === level)));
  },
};

// A part of a date given as days since 1970-01-01, in UTC; weekdays are ISO's, Monday is 1.
export function datePart(days, part) {
  if (Number.isNaN(days)) return NaN;
  const seconds = Math.round(days * DAY);
  const date = new Date(seconds * 1000);
  const whole = Math.floor(seconds / DAY);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const start = new Date(0);
  start.setUTCFullYear(year, 0, 1);
  return {
    year,
    quarter: Math.floor(month / 3) + 1,
    month: month + 1,
    day_of_year: whole - Math.round(start.getTime() / (1000 * DAY)) + 1,
    day: date.getUTCDate(),
    weekday: ((((whole + 3) % 7) + 7) % 7) + 1, // 1970-01-01 was a Thursday
    hour: date.getUTCHours(),
  }[part];
}
