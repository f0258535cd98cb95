"""The paper's remark on the lasso: from private matrices it is sparse, but not where the truth is zero.

For each matrix the lasso's path is followed, and the largest penalty is taken whose true error is at most 1.25 times the smallest on the
path: sparse and still good, as practitioners choose by cross-validation. Nobody has the true error, so this is the best that each could
do. Then it is counted which coefficients are zero."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from dpgram.linalg.symmetric import positive_part
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER
from experiments.sheffet2015.figures import save
from experiments.sheffet2015.run import Cell, load_gram
from experiments.sheffet2015.settings import FEATURES, MULTIPLE
from experiments.sheffet2015.techniques import Problem

Array = np.ndarray

SPARSER = 1.25
EXTRA = 10  # m: as many labels among the features
EXPONENTS = (16, 20, 24, 27)
MATRICES = {
    "not private": None,
    "Analyze Gauss": ("analyze-gauss", "gaussian-noise", {}),
    "Algorithm 2": ("algorithm-2", "gaussian-sketch-adaptive", {"sketch_rows": 2.0 * MULTIPLE.dim}),
    "Algorithm 5": ("algorithm-5", "inverse-wishart-adaptive", {"degrees_of_freedom": 2.0 * MULTIPLE.dim}),
    "Algorithm 3, shifted": ("algorithm-3", "wishart-noise", {}),
}


@dataclass(frozen=True)
class Zeros:
    """How often the lasso's coefficients are zero, where the truth is not (features) and where it is (labels as features)."""

    exponent: int
    repetition: int
    calibration: str
    matrix: str
    zero_features: float
    zero_extras: float
    error: float


def zeros_of(cell: Cell, folder: Path) -> list[Zeros]:
    """All counts on one table of the multiple-regressions setting."""
    setting, exponent, repetition = cell
    gram, beta = load_gram(folder, cell)
    problem = Problem(setting, exponent, repetition, gram, beta, (EXTRA,))
    counts = []
    for name, release in MATRICES.items():
        for calibration in (PAPER, EXACT_CURVE) if release else ("",):
            matrix = gram
            if release:
                technique, mechanism, options = release
                matrix = problem.release(0.1, calibration, 0, technique, mechanism, dict(options)).gram
            counts.append(Zeros(exponent, repetition, calibration, name, *_count(matrix, beta)))
    return counts


def _count(gram: Array, beta: Array) -> tuple[float, float, float]:
    places = [*range(1 + FEATURES + EXTRA), MULTIPLE.dim - 1]
    # Lasso needs a positive semi-definite matrix; the intercept is not penalised, so it is projected out first.
    block = positive_part(gram[np.ix_(places, places)])
    inner = block[1:, 1:] - np.outer(block[0, 1:], block[0, 1:]) / block[0, 0]
    size = np.sqrt(np.maximum(np.diag(inner), 1e-12))
    values, vectors = np.linalg.eigh(inner / size[:, None] / size)
    rows = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # standardised, as glmnet does
    features, label = np.asfortranarray(rows[:, :-1]), rows[:, -1]
    penalties = np.abs(features.T @ label).max() / len(label) * np.geomspace(1, 1e-5, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at penalties next to zero, far beyond the one that is taken
        _, slopes, _ = enet_path(features, label, l1_ratio=1.0, alphas=penalties, max_iter=20_000)
    own = slopes * (size[-1] / size[:-1])[:, None]
    truth = np.concatenate([beta[1:, -1], np.zeros(EXTRA)])
    errors = np.linalg.norm(own - truth[:, None], axis=0)
    best = own[:, int(np.flatnonzero(errors <= SPARSER * errors.min())[0])]  # penalties fall, so the first is the largest
    return float(np.mean(best[:FEATURES] == 0)), float(np.mean(best[FEATURES:] == 0)), float(errors.min())


def write_zeros(zeros: Sequence[Zeros], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f.name for f in fields(Zeros)])
        writer.writerows([*astuple(z)[:4], *(f"{v:.4g}" for v in astuple(z)[4:])] for z in sorted(zeros, key=astuple))


def read_zeros(path: Path) -> list[Zeros]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Zeros(
                int(r["exponent"]),
                int(r["repetition"]),
                r["calibration"],
                r["matrix"],
                float(r["zero_features"]),
                float(r["zero_extras"]),
                float(r["error"]),
            )
            for r in csv.DictReader(file)
        ]


def shares(zeros: Sequence[Zeros], matrix: str, calibration: str, exponent: int) -> tuple[float, float]:
    """Mean shares of zeros: among the features, and among the labels used as features."""
    chosen = [z for z in zeros if (z.matrix, z.exponent) == (matrix, exponent) and z.calibration in (calibration, "")]
    return float(np.mean([z.zero_features for z in chosen])), float(np.mean([z.zero_extras for z in chosen]))


def draw_zeros(zeros: Sequence[Zeros], path: Path) -> list[Path]:
    """Figure 7: shares of zeros, printed constants on the left, exact ones on the right."""
    exponents = sorted({z.exponent for z in zeros})
    figure = Figure(figsize=(11, 1.2 + 2.3 * len(exponents)), layout="constrained")
    axes = figure.subplots(len(exponents), 2, sharex=True, sharey=True, squeeze=False)
    width = 0.38
    for row, exponent in zip(axes, exponents, strict=True):
        for axis, calibration in zip(row, (PAPER, EXACT_CURVE), strict=True):
            pairs = [shares(zeros, matrix, calibration, exponent) for matrix in MATRICES]
            x = np.arange(len(pairs))
            axis.bar(x - width / 2, [a for a, _ in pairs], width, color="0.75", edgecolor="k", label="features that matter")
            axis.bar(
                x + width / 2,
                [b for _, b in pairs],
                width,
                color="tab:blue",
                edgecolor="k",
                hatch="//",
                label="features that do not",
            )
            axis.set_title(f"n = 2^{exponent}: {'printed' if calibration == PAPER else 'exact'} constants", fontsize=10)
            axis.set_ylim(0, 1)
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xticks(x, [name.replace(", ", ",\n") for name in MATRICES], fontsize=8)
        row[0].set_ylabel("share of zeros")
    figure.suptitle(
        f"Figure 7. The lasso at its best penalty: which coefficients are zero (epsilon 0.1, m = {EXTRA})", fontsize=12
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return save(figure, path)
