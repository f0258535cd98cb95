"""The idea of the whitened release in one picture: ``python -m experiments.whitened.picture`` writes docs/images/whitened.png.

Two columns that say nearly the same, released a dozen times at one budget: in one look, and in rounds. Everything in it is drawn from
the mechanisms themselves."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dpgram.linalg.scales import grams
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, Outcome, hold
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.scales import SWITCH

Array = np.ndarray

ROWS = 1000
BUDGET = Budget(1.0, 1e-6)
RELEASES = 12
SD, CORRELATION = 0.38, 0.965
CLOUD, TRUTH, NOISY, CLIP = "#56B4E9", "#000000", "#D55E00", "#0072B2"  # of Okabe and Ito
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "whitened.png"


def rows() -> Array:
    """(n, 2), within [-1, 1]."""
    covariance = SD**2 * np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    return np.clip(np.random.default_rng(1).multivariate_normal([0, 0], covariance, size=ROWS), -1, 1)


def released(name: str, table: Array, seed: int) -> Outcome:
    mechanism = registry.find(name)
    task = registry.task(mechanism, BUDGET, Neighbours.REPLACE, 2, math.sqrt(2), intercept=False)

    def answer(question: GramQuestion) -> GramAnswer:
        if question.through is None:
            return GramAnswer(table.T @ table, len(table))  # none is longer than the bound
        gram, *outer = grams([table @ question.through.matrix.T], question.scales, SWITCH)
        return GramAnswer(gram, len(table), tuple(outer))

    return hold(mechanism.start(task, SeededSource(seed)), answer)


def ellipse(gram: Array) -> Array | None:
    """Two standard deviations of rows with this Gram, (2, points); None where the matrix is no Gram of anything."""
    sizes, axes = np.linalg.eigh(gram / ROWS)
    if sizes[0] <= 0:
        return None
    angle = np.linspace(0, 2 * math.pi, 400)
    return 2 * axes @ (np.sqrt(sizes)[:, None] * np.array([np.cos(angle), np.sin(angle)]))


def draw(file: Path) -> None:
    table = rows()
    whitened = [released("whitened-noise", table, seed) for seed in range(RELEASES)]
    last = whitened[0].noise.last
    figure = Figure(figsize=(13, 5.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plain = [released("gaussian-noise", table, seed).gram for seed in range(RELEASES)]
    lost = _panel(left, table, plain, table.T @ table)
    _frame(left, 1.5, "One look: noise is round, the rows are not")
    left.plot(*_circle(math.sqrt(2)), color=CLIP, lw=1.4, ls="--", label="the longest that a row may be")
    left.set_xlabel(f"{lost} of {RELEASES} releases are no ellipse at all")
    z = table @ last.through.T
    long = np.linalg.norm(z, axis=1) > 1
    seen = z / np.maximum(1.0, np.linalg.norm(z, axis=1, keepdims=True))
    middle.scatter(*z[long][:300].T, s=4, color="0.7", lw=0, zorder=1)
    _panel(middle, seen, [last.gram], seen.T @ seen)
    middle.plot(*_circle(1.0), color=CLIP, lw=1.4, ls="--")
    _frame(middle, 1.9, "The last round: rows whitened by earlier ones")
    middle.set_xlabel(f"{np.mean(long):.0%} of the rows (grey) are shrunk to the circle")
    _panel(right, table, [each.gram for each in whitened], table.T @ table)
    right.plot(*_circle(math.sqrt(2)), color=CLIP, lw=1.4, ls="--")
    _frame(right, 1.5, "Mapped back: noise has the shape of the rows")
    right.set_xlabel(f"{RELEASES} releases, in {len(whitened[0].noise.rounds)} rounds each")
    inset = right.inset_axes((0.03, 0.62, 0.36, 0.36))
    _panel(inset, table, [each.gram for each in whitened], table.T @ table)
    inset.set(xlim=(0.4, 0.85), ylim=(0.4, 0.85), xticks=[], yticks=[], aspect="equal")
    right.indicate_inset_zoom(inset, edgecolor="0.4")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    budget = f"epsilon {BUDGET.epsilon:g}, delta {BUDGET.delta:g}"
    figure.suptitle(f"{ROWS:,} rows of two columns with correlation {CORRELATION}; {budget} on every panel")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, metadata={"Software": None})


def _panel(axis: Any, cloud: Array, grams: list[Array], truth: Array) -> int:
    """Rows, released ellipses and the true one; returns how many releases have none."""
    axis.scatter(*cloud[:1000].T, s=4, color=CLOUD, lw=0, label="rows", zorder=1)
    drawn = [outline for outline in map(ellipse, grams) if outline is not None]
    for place, outline in enumerate(drawn):
        axis.plot(
            *outline, color=NOISY, lw=1.1, alpha=0.8, label="released: 2 sd of the rows" if place == 0 else None, zorder=3
        )
    axis.plot(*ellipse(truth), color=TRUTH, lw=1.8, label="the truth", zorder=2)
    return len(grams) - len(drawn)


def _circle(radius: float) -> Array:
    angle = np.linspace(0, 2 * math.pi, 400)
    return radius * np.array([np.cos(angle), np.sin(angle)])


def _frame(axis: Any, half: float, title: str) -> None:
    axis.set(xlim=(-half, half), ylim=(-half, half), aspect="equal")
    axis.set_title(title, fontsize=10.5)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.whitened.picture", description=__doc__)
    parser.add_argument("--out", type=Path, default=PICTURE)
    draw(parser.parse_args().out)


if __name__ == "__main__":
    main()
