"""Steering on a sample: ``python -m experiments.whitened.steering`` writes what it costs in accuracy into docs/whitened.md.

Releases of the same rows with the same noise, whose early rounds are over all rows or over a sample. Simulated tables as in the study, so
many rows and so large a budget that all rows would steer far better than the rule asks for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

from dpgram.mechanisms.whitening import Rules
from experiments.coverage.releases import plain_schema
from experiments.coverage.rounds import release_rows
from experiments.markers import fill_page
from experiments.whitened.designs import Table, draw
from experiments.whitened.releases import coefficients

PAGE = Path(__file__).parents[2] / "docs" / "whitened.md"
EXPONENT, EPSILON, FEATURES = 17, 4.0, 20
SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)
KINDS = ("single", "AR(0.9)", "powers", "factors", "blocks", "leverage", "rare levels")


def errors(table: Table, share: float, coins: np.ndarray, seed: int) -> tuple[float, float]:
    """The distance of one private regression to the coefficients that made the data; and the rows that steered, times mu_1 / d^1.5."""
    with patch.object(Rules, "sample", lambda *_: None if share == 1.0 else share):
        release = release_rows(
            table.rows,
            schema=plain_schema(len(table.half)),
            row_bound=float(np.sqrt(table.squared_bound)),
            epsilon=EPSILON,
            seed=seed,
            half_ranges=tuple(table.half.tolist()),
            sample=table.rows[coins < share],
        )
    ((places, truth),) = table.truths.values()
    distance = np.linalg.norm((coefficients(release, places)[0] - truth) * table.units[places])
    return float(distance), share * len(table.rows) * release.parameters["round_1_mu"] / len(table.half) ** 1.5


def lines(repetitions: int) -> Iterator[str]:
    rows = 2**EXPONENT
    header, ratios = "", []
    for kind in KINDS:
        found = np.empty((repetitions, len(SHARES), 2))
        for r in range(repetitions):
            rng = np.random.default_rng(r)
            table, coins = draw(kind, rows, FEATURES, rng), rng.random(rows)
            found[r] = [errors(table, share, coins, r) for share in SHARES]
        logs = np.log(found[:, 1:, 0] / found[:, :1, 0])
        ratios.append(logs.mean(axis=0))
        told = [f"{np.exp(m):.3f} ± {s:.3f}" for m, s in zip(logs.mean(0), logs.std(0) / np.sqrt(repetitions), strict=True)]
        if not header:
            header = "| rows that steer, in d^1.5/mu_1 | " + " | ".join(f"{x:.0f}" for x in found[0, 1:, 1]) + " |"
            yield header
            yield "|---|" + "---|" * (len(SHARES) - 1)
        yield f"| {kind} | " + " | ".join(told) + " |"
    yield "| geometric mean | " + " | ".join(f"{x:.3f}" for x in np.exp(np.mean(ratios, axis=0))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.whitened.steering", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=40)
    table = []
    for line in lines(parser.parse_args().repetitions):
        print(line, flush=True)
        table.append(line)
    fill_page(PAGE, {"steering": "\n".join(table)})


if __name__ == "__main__":
    main()
