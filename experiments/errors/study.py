"""The grid of the study, and the rows of the table that the default estimator was chosen by, on seeds of their own."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.coverage.releases import ALL, DELTA, calibrated_once, claim, make_release, plain_schema, plan
from experiments.coverage.settings import Setting, draw
from experiments.errors import designs
from experiments.errors.estimators import ESTIMATORS, errors

SEED = 7_2026
EPSILONS, COLUMNS, ROWS = (0.05, 0.2, 1.0, 5.0), (3, 5, 12, 40, 100), (2**12, 2**16, 2**20)
GRID_RUNS, PAPER_RUNS = 100, 15


@dataclass(frozen=True)
class Cell:
    """Mean l2 errors over independent data sets, each released once."""

    part: str  # "grid", "paper" or "mechanisms"
    setting: str
    columns: int
    rows: int
    epsilon: float
    mechanism: str
    runs: int
    non_private: float
    means: dict[str, float]

    @property
    def ratio_to_best(self) -> float:
        """The default's mean error over the smallest mean error of any estimator."""
        return self.means["shrunk"] / min(self.means.values())

    @property
    def noise_is_small(self) -> bool:
        """Whether the noise adds less to the plain solve's mean square than the sampling of rows has in it."""
        return self.means["plain"] < np.sqrt(2) * self.non_private

    @property
    def ratio_to_plain(self) -> float:
        return self.means["shrunk"] / self.means["plain"]


def grid(runs: int = GRID_RUNS) -> Iterator[Cell]:
    for kind in designs.KINDS:
        for columns in COLUMNS:
            for rows in ROWS:
                for epsilon in EPSILONS:
                    yield grid_cell(kind, columns, rows, epsilon, runs)


def grid_cell(kind: str, columns: int, rows: int, epsilon: float, runs: int) -> Cell:
    """Gaussian noise on a drawn Gram; the row bound is what columns within [-1, 1] have."""
    distances, without = [], []
    for run in range(runs):
        rng = np.random.default_rng([SEED, zlib.crc32(kind.encode()), columns, rows, round(100 * epsilon), run])
        gram, beta, least_squares = designs.draw(kind, columns, rows, rng)
        release = make_release(
            gram,
            schema=plain_schema(columns),
            rows=rows,
            row_bound=float(np.sqrt(columns)),
            epsilon=epsilon,
            delta=1e-7,
            mechanism="gaussian-noise",
            seed=int(rng.integers(2**40)),
        )
        distances.append(errors(release, plan(release, list(range(1, columns - 1))), beta))
        without.append(float(np.linalg.norm(least_squares - beta)))
    return Cell("grid", kind, columns, rows, epsilon, "gaussian-noise", runs, float(np.mean(without)), _means(distances))


PAPER = (  # others, log2 of rows: the rows of the table in question
    (None, 14), (None, 16), (None, 20), (1, 16), (1, 19), (5, 17), (19, 20), (19, 22),
)  # fmt: skip
EVERY_MECHANISM = ((None, 16), (None, 20), (1, 18), (1, 20))


def paper(runs: int = PAPER_RUNS) -> Iterator[Cell]:
    for others, length in PAPER:
        yield paper_cell("paper", others, length, ("gaussian-noise",), runs)[0]
    for others, length in EVERY_MECHANISM:
        yield from paper_cell("mechanisms", others, length, ALL, runs)


def paper_cell(part: str, others: int | None, length: int, mechanisms: tuple[str, ...], runs: int) -> list[Cell]:
    """One regression of the paper's settings, on data sets that no other study uses; ``others`` None is the single label's."""
    setting = Setting("errors, single", 2**length) if others is None else Setting("errors, multi", 2**length, labels=20)
    data = [draw(setting, index)[:2] for index in range(runs)]
    options = claim(np.array([gram for gram, _ in data]), setting.row_bound)
    cells = []
    for mechanism in mechanisms:
        if mechanism == "noisy-inverse" and options is None:
            continue
        distances, without = [], []
        for index, (gram, beta) in enumerate(data):
            release = make_release(
                gram,
                schema=plain_schema(setting.columns),
                rows=setting.rows,
                row_bound=setting.row_bound,
                epsilon=0.1,
                delta=DELTA,
                mechanism=mechanism,
                seed=zlib.crc32(f"{part} {others} {length} {mechanism}".encode()) * 1000 + index,
                options=options if mechanism == "noisy-inverse" else None,
            )
            features = setting.places(others or 0)
            truth = setting.truth(beta, others or 0)
            distances.append(errors(release, plan(release, features), truth))
            own = [0, *features]
            without.append(float(np.linalg.norm(np.linalg.solve(gram[np.ix_(own, own)], gram[own, -1]) - truth)))
        name = "single" if others is None else f"m = {others}"
        cells.append(
            Cell(part, name, setting.columns, setting.rows, 0.1, mechanism, runs, float(np.mean(without)), _means(distances))
        )
    return cells


def _means(distances: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in distances])) for name in distances[0]}


CELLS = len(designs.KINDS) * len(COLUMNS) * len(ROWS) * len(EPSILONS) + len(PAPER) + len(EVERY_MECHANISM) * len(ALL)  # about

HEAD = ("part", "setting", "columns", "rows", "epsilon", "mechanism", "runs", "non_private")


def write(file: Path, cells: list[Cell]) -> None:
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*HEAD, *ESTIMATORS])
        for cell in cells:
            numbers = [f"{cell.means[name]:.5g}" if name in cell.means else "" for name in ESTIMATORS]
            writer.writerow([*(getattr(cell, name) for name in HEAD[:-1]), f"{cell.non_private:.5g}", *numbers])


def read(file: Path) -> list[Cell]:
    with file.open(newline="") as lines:
        return [
            Cell(
                part=line["part"],
                setting=line["setting"],
                columns=int(line["columns"]),
                rows=int(line["rows"]),
                epsilon=float(line["epsilon"]),
                mechanism=line["mechanism"],
                runs=int(line["runs"]),
                non_private=float(line["non_private"]),
                means={name: float(line[name]) for name in ESTIMATORS if line[name]},
            )
            for line in csv.DictReader(lines)
        ]


def everything() -> Iterator[Cell]:
    with calibrated_once():
        yield from grid()
        yield from paper()
