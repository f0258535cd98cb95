"""Simulated tables with known coefficients: the paper's settings, and others with correlation, heavy tails, rare levels and wide bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.whitened.releases import INDICATOR, INTERCEPT, NUMBER

Array = np.ndarray

ERROR_SD = 0.5
LARGEST = 40.0  # cells are clamped to it


@dataclass(frozen=True, eq=False)
class Table:
    """Rows (1, x, labels), and the regressions of the last label that are asked of them."""

    rows: Array
    half: Array  # what each column is
    squared_bound: float
    truths: dict[str, tuple[list[int], Array]]  # by name: features and true coefficients
    units: Array  # errors are measured in the units in which features have a standard deviation of about one


def draw(kind: str, n: int, features: int, rng: np.random.Generator, *, wide: bool = False) -> Table:
    """``wide`` declares bounds of ten standard deviations of features that are numbers; else the squared bound is the paper's 2.5 d."""
    labels = 20 if kind == "multiple" else 1
    error = ERROR_SD * rng.standard_normal((n, labels))
    x, half = rng.standard_normal((n, features)), NUMBER
    match kind:
        case "AR(0.9)":
            for j in range(1, features):
                x[:, j] = 0.9 * x[:, j - 1] + np.sqrt(0.19) * x[:, j]
        case "t3":
            x = rng.standard_t(3, (n, features)) / np.sqrt(3)
            error = ERROR_SD * rng.standard_t(3, (n, 1)) / np.sqrt(3)
        case "heavy errors":
            error = ERROR_SD * rng.standard_t(2.2, (n, 1))
        case "binary":
            x, half = (x > 0.5).astype(float), INDICATOR
        case "rare levels":
            x, half = (rng.random((n, features)) < np.geomspace(0.5, 0.003, features)).astype(float), INDICATOR
        case "blocks":
            for j in range(0, features, 5):
                x[:, j : j + 5] = np.sqrt(0.95) * rng.standard_normal((n, 1)) + np.sqrt(0.05) * x[:, j : j + 5]
        case "factors":
            x = 0.15 * x + rng.standard_normal((n, 3)) @ rng.standard_normal((3, features)) / np.sqrt(3)
        case "leverage":  # one row in a thousand lies ten times as far
            x = 0.3 * x * np.where(rng.random(n) < 0.001, 10.0, 1.0)[:, None]
        case "skewed":
            x = np.exp(0.8 * x) / 4
        case "powers":  # of a few variables, each up to the fourth
            own = 0.5 * x[:, : -(-features // 4)]
            x = np.column_stack([own**power for power in (1, 2, 3, 4)])[:, :features]
        case "mixed":  # AR(0.9), of which every second column is only known to be above or below zero
            for j in range(1, features):
                x[:, j] = 0.9 * x[:, j - 1] + np.sqrt(0.19) * x[:, j]
            x[:, 1::2], half = x[:, 1::2] > 0, np.where(np.arange(features) % 2 == 1, INDICATOR, NUMBER)
    beta = rng.uniform(-1, 1, (1 + features, labels))
    own = np.column_stack([np.ones(n), x])
    rows = np.clip(np.column_stack([own, own @ beta + error]), -LARGEST, LARGEST)
    d = rows.shape[1]
    p = 1 + features
    halves = np.full(d, NUMBER)
    units = np.ones(d)
    halves[0], halves[1:p] = INTERCEPT, half
    if wide:
        units[1:p] = np.where(halves[1:p] == NUMBER, 0.1, 1.0)
        units[p:] = 0.05
        rows = np.clip(rows * units, -1, 1)
    truths = {}
    for others in (1, 5, 10, 19) if labels > 1 else (0,):
        places = list(range(p + others))
        truth = np.concatenate([beta[:, -1], np.zeros(others)]) / units[places] * units[-1]
        truths[f"m = {others}" if others else kind] = places, truth
    return Table(rows, halves, float(d) if wide else 2.5 * d, truths, units)
