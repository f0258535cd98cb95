import assert from "node:assert/strict";
import test from "node:test";
import { rowsThatCounted } from "../coefficients.js";
import { shorten } from "../dom.js";
import { datePart } from "../encode.js";
import { dateText, daysOf, interval, number, ticks } from "../format.js";
import { pythonCode } from "../python.js";
import { debiasedGain } from "../shrinkage.js";

test("numbers have five digits and no needless zeros", () => {
  const known = [[0, "0"], [1, "1"], [-0.5, "-0.5"], [1234.5678, "1234.6"], [123456, "1.2346e5"], [0.00001234, "1.234e-5"], [99999.7, "1e5"],
    [Infinity, "\u221e"], [null, ""]];
  known.forEach(([value, words]) => assert.equal(number(value), words));
  assert.equal(interval([-Infinity, Infinity]), "not identified at this budget");
});

test("a noisy number of rows that is as small as it can be says none", () => {
  const said = (rows, rowsSd, countsAtLeast = false) => rowsThatCounted({ counted: { rows, rowsSd }, countsAtLeast });
  assert.equal(said(1.4, 20), "about none (s.e. 20)");
  assert.equal(said(11, 20), "about 11 (s.e. 20)");
  assert.equal(said(1, 0), "1");
  assert.equal(said(1, 0, true), "at least about 1");
});

test("ticks are round and lie within the axis", () => {
  assert.deepEqual(ticks(-1, 1, 4), [-1, -0.5, 0, 0.5, 1]);
  assert.deepEqual(ticks(0, 930, 4).map(Math.round), [0, 500]);
});

test("a long name keeps its start and its end", () => {
  assert.equal(shorten("short", 20), "short");
  const names = Array.from({ length: 12 }, (_, k) => shorten(`a category with a long name[level number ${k}]`, 20));
  assert.equal(new Set(names).size, 12);
  names.forEach((name) => assert.equal(Array.from(name).length, 20));
});

test("parts of dates are those of the calendar in UTC", () => {
  const days = daysOf("2024-12-31T23:15");
  const parts = { year: 2024, quarter: 4, month: 12, day_of_year: 366, day: 31, weekday: 2, hour: 23 };
  Object.entries(parts).forEach(([part, value]) => assert.equal(datePart(days, part), value, part));
  assert.equal(datePart(daysOf("1969-12-31"), "weekday"), 3);
  assert.equal(datePart(daysOf("0001-01-01"), "day_of_year"), 1);
  assert.equal(dateText(days, true), "2024-12-31T23:15");
});

test("code for Python quotes whatever a name holds", () => {
  const odd = 'a "quoted" \\ name\nof two lines';
  const release = {
    intercept: true,
    encoded: [{ name: "(intercept)", column: null, sources: [] }, { name: odd, column: odd, sources: [odd] }, { name: "y", column: "y", sources: ["y"] }],
    declared: [{ name: odd, kind: "numeric" }, { name: "y", kind: "numeric" }],
    derived: [],
  };
  const code = pythonCode(release, { target: 2, features: new Set(), confidence: 0.9, intervals: "wald", intercept: false }, { [odd]: 1 });
  assert.ok(code.includes('dpgram.regress(release, "y", [], intervals="wald", confidence=0.9, intercept=False)'));
  const both = pythonCode(release, { target: 2, features: new Set([odd]), confidence: 0.95, intervals: "auto", intercept: true }, { [odd]: 1.5 });
  assert.ok(both.includes('dpgram.regress(release, "y")') && both.includes(`${JSON.stringify(odd)}: [1.5]`));
});

test("a gain is debiased so that its own equation holds", () => {
  const [gain, weight, spread] = [Float64Array.of(10, 3, -1), Float64Array.of(1, 2, 0.5), 0.7];
  const x = debiasedGain(gain, weight, spread);
  const total = x.reduce((sum, value, i) => sum + weight[i] / value, 0);
  x.forEach((value, i) => assert.ok(Math.abs(value - gain[i] - spread * weight[i] * (total + weight[i] / value)) < 1e-12));
});
