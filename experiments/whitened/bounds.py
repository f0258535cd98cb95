"""Bounds declared too wide: ``python -m experiments.whitened.bounds`` writes the table of docs/whitened.md between its markers.

Rows are those of the paper's single regression and of its regression with five redundant features; every column is declared within so many
standard deviations of its own. Releases and regressions are the library's, with default estimators."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dpgram
from experiments.markers import fill_page
from experiments.sheffet2015.grams import coefficients, whole_rows
from experiments.sheffet2015.settings import FEATURES, MULTIPLE, SINGLE, Setting, seed

PAGE = Path(__file__).parents[2] / "docs" / "whitened.md"
EXPONENT = 16
WIDTHS = (5, 20, 100, 1000)  # half of the declared range, in standard deviations
CASES = ((SINGLE, 0, 0.1), (SINGLE, 0, 1.0), (MULTIPLE, 5, 0.1), (MULTIPLE, 5, 1.0))
MECHANISMS = ("gaussian-noise", "whitened-noise")


def errors(setting: Setting, extra: int, epsilon: float, mechanism: str, width: float, repetition: int) -> float:
    """The distance of one private regression to the coefficients that made the data."""
    cell = (setting, EXPONENT, repetition)
    beta = coefficients(*cell)
    rows = whole_rows(np, setting, beta, seed(*cell), np.arange(2**EXPONENT, dtype=np.int64))[:, 1:]
    sds = [1.0] * FEATURES + np.sqrt(np.sum(beta[1:] ** 2, axis=0) + 0.25).tolist()
    names = [f"x{j}" for j in range(1, FEATURES + 1)] + [f"y{j}" for j in range(1, setting.labels + 1)]
    declared = [dpgram.Numeric(name, -width * sd, width * sd, missing="midpoint") for name, sd in zip(names, sds, strict=True)]
    released = dpgram.release(
        rows,
        dpgram.Schema(unit="row", columns=declared),
        columns=names,
        epsilon=epsilon,
        delta=1e-6,
        mechanism=mechanism,
        insecure_seed=repetition,
        **({"looks": "none"} if mechanism == "whitened-noise" else {}),
    )
    fit = dpgram.regress(released, names[-1], names[: FEATURES + extra])
    estimates = fit.estimates.to_numpy()
    return float(np.linalg.norm(estimates - np.concatenate([beta[:, -1], np.zeros(extra)])))


def lines(repetitions: int) -> Iterator[str]:
    yield f"| mean l2 error, n = 2^{EXPONENT} | mechanism | " + " | ".join(f"±{w} sd" for w in WIDTHS) + " |"
    yield "|---|---|" + "---|" * len(WIDTHS)
    for setting, extra, epsilon in CASES:
        words = "single regression" if setting is SINGLE else f"{extra} redundant features"
        for mechanism in MECHANISMS:
            means = [np.mean([errors(setting, extra, epsilon, mechanism, w, r) for r in range(repetitions)]) for w in WIDTHS]
            yield f"| {words}, epsilon {epsilon:g} | `{mechanism}` | " + " | ".join(f"{mean:.2g}" for mean in means) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.whitened.bounds", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    table = []
    for line in lines(parser.parse_args().repetitions):
        print(line, flush=True)
        table.append(line)
    fill_page(PAGE, {"bounds": "\n".join(table)})


if __name__ == "__main__":
    main()
