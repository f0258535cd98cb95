import assert from "node:assert/strict";
import test from "node:test";
import { identity, solve } from "../linalg.js";
import { withTails } from "../tails.js";

// Least squares in the basis, and what it was asked for.
function channelOf(block, law) {
  const p = block.length - 1;
  const estimate = solve(block.slice(0, p).map((row) => row.slice(0, p)), block.slice(0, p).map((row) => row[p]));
  return { axes: identity(p), estimate, block, law };
}

const matrix = (rows) => rows.map((row) => Float64Array.from(row));
const times = (factor, rows) => rows.map((row) => row.map((value) => factor * value));
const inner = matrix([[100, 3, 20], [3, 90, -10], [20, -10, 110]]);
const tails = (outer, changes) => ({ first: inner, outer, scales: [4, 16], sizes: [0.5, 0.1], size: 100, usual: [0.5, 0.1], through: identity(3), reaches: [1, 1],
  sd: 0.2, shapeSd: 0.002, dim: 3, ...changes });
const read = (known) => withTails(known, inner, channelOf(inner, null), channelOf, identity(2), () => [0, 0]);

test("long rows that say the same as the others leave the shape as it is", () => {
  const outer = [0.5, 0.1].map((size) => times(size / 100, inner));
  const seen = read(tails(outer));
  const grown = 1 + (4 * 0.5 + 16 * 0.1) / 100;
  seen.block.forEach((row, i) => row.forEach((value, j) => assert.ok(Math.abs(value - grown * inner[i][j]) < 1e-12)));
  assert.ok(seen.byClipping > 0); // they might have said something else, below the noise
});

test("what outer matrices show well above their noise is believed, and leaves nothing open", () => {
  const outer = [matrix([[5, 0, 3], [0, 5, 2], [3, 2, 5]]), matrix([[1, 0, 0.5], [0, 1, 0.6], [0.5, 0.6, 1]])];
  const seen = read(tails(outer, { sizes: [5, 1], usual: [5, 1], sd: 1e-6 }));
  const whole = inner.map((row, i) => row.map((value, j) => value + 4 * outer[0][i][j] + 16 * outer[1][i][j]));
  const [wanted, found] = [channelOf(whole, null), seen].map(({ estimate }) => estimate);
  found.forEach((value, i) => assert.ok(Math.abs(value - wanted[i]) < 1e-6, `${value} and ${wanted[i]}`));
  assert.ok(seen.byClipping < 1e-6);
  assert.ok(seen.law.sd_off_diagonal < 1e-4);
});

test("noise that hides what outer matrices hold leaves the estimate, and opens the interval", () => {
  const outer = [matrix([[0.5, 0, 0.4], [0, 0.5, -0.4], [0.4, -0.4, 0.5]]), matrix([[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])];
  const [seen, first] = [read(tails(outer, { sd: 50 })), channelOf(inner, null)];
  seen.estimate.forEach((value, i) => assert.ok(Math.abs(value - first.estimate[i]) < 1e-3));
  assert.ok(seen.byClipping > 0.1);
});

test("rows that agree at one scale are taken to agree at the next", () => {
  const far = matrix([[1, 0, 0.3], [0, 1, 0.3], [0.3, 0.3, 1]]);
  const [alike, apart] = [matrix([[50, 0, 40], [0, 50, 40], [40, 40, 50]]), times(0.5, inner)].map((near) =>
    read(tails([near, far], { sizes: [50, 1], usual: [50, 1], sd: 0.3 })),
  );
  assert.ok(alike.byClipping > apart.byClipping);
});

test("a coefficient is less certain along a direction in which the bounds let rows reach further", () => {
  const outer = [0.5, 0.1].map((size) => times(size / 100, inner));
  const through = matrix([[2, 0, 0], [0, 0.5, 0], [0, 0, 1]]);
  const { leaning } = read(tails(outer, { through, reaches: [0.95, 1.75], sd: 5 }));
  assert.ok(leaning[0] > 1 && leaning[1] < 1, `${leaning}`);
});

test("a coefficient is less certain along the fit, and no less in the mean", () => {
  const outer = [0.5, 0.1].map((size) => times(size / 100, inner));
  const known = tails(outer, { sd: 5 });
  const [even, bent] = [[0, 0], [1, 0]].map((fit) => withTails(known, inner, channelOf(inner, null), channelOf, identity(2), () => fit));
  assert.ok(bent.leaning[0] > even.leaning[0] && bent.leaning[1] < even.leaning[1]);
  const ratios = bent.leaning.map((value, i) => (value / even.leaning[i]) ** 2);
  assert.ok(Math.abs(ratios[0] + ratios[1] - 2) < 1e-12);
});
