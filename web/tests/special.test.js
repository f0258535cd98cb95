import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as special from "../special.js";

// Made with mpmath at 40 digits.
const KNOWN = JSON.parse(readFileSync(new URL("special.json", import.meta.url), "utf-8"));
const close = (found, wanted, at) =>
  assert.ok(Math.abs(found - wanted) <= 1e-11 * Math.max(Math.abs(wanted), 1e-300), `${at}: ${found} and ${wanted}`);

for (const name of ["logGamma", "gammaAbove", "betaBelow", "logNormalBelow", "normalAbove", "studentAbove"]) {
  test(`${name} has eleven digits`, () => {
    for (const row of KNOWN[name]) close(special[name](...row.slice(0, -1)), row.at(-1), `${name}(${row.slice(0, -1)})`);
  });
}

test("quantiles of chi-square have eleven digits, and so have their distances from one", () => {
  for (const [degrees, share, above, wanted] of KNOWN.chiSquare) {
    const found = (above ? special.chiSquareAbove : special.chiSquareBelow)(degrees, share);
    assert.ok(Math.abs(found - wanted) <= 1e-10 * Math.abs(wanted - 1), `${degrees}, ${share}, ${above}: ${found} and ${wanted}`);
  }
});

test("tails and their quantiles are inverses of each other", () => {
  for (const tail of [0.3, 0.025, 1e-4]) {
    close(1 - special.normalBelow(special.normalAbove(tail)), tail, `normal ${tail}`);
    close(special.pValue(special.studentAbove(23.5, tail) ** 2, 1, 23.5) / 2, tail, `student ${tail}`);
  }
});

test("a p-value of nothing is one, and of a huge statistic is tiny but not lost", () => {
  assert.equal(special.pValue(0, 3, Infinity), 1);
  assert.equal(special.pValue(-1, 3, 40), 1);
  assert.ok(special.pValue(600, 1, Infinity) > 1e-140 && special.pValue(600, 1, Infinity) < 1e-125);
});
