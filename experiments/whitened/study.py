"""The grid of the study: simulated designs and real tables, some of which had no part in choosing the mechanism's constants."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from experiments.coverage.releases import calibrated_once
from experiments.coverage.rounds import last_weights
from experiments.whitened import designs, tables
from experiments.whitened.releases import HARD_CLIP, clipped_gram, coefficients, single, whitened

Array = np.ndarray

SEED = 9_2026
SIMULATED_DELTA, REAL_DELTA = math.exp(-9), 1e-6
EPSILONS = (0.1, 0.3, 1.0, 3.0, 5.0)
DRAWS = 20  # of noise, for each real table and epsilon
CHOSEN, COMPARED, HELD_OUT = "chosen on", "compared on", "held out"


@dataclass(frozen=True)
class Case:
    """A design, 2^length rows, and how many data sets."""

    kind: str
    length: int
    epsilon: float
    runs: int = 30
    features: int = 20
    wide: bool = False
    group: str = CHOSEN


CASES = (
    *(Case("single", k, e) for k in (14, 16) for e in (0.1, 1.0)),
    Case("single", 18, 0.1),
    *(Case("multiple", 16, e) for e in (0.1, 1.0)),
    Case("multiple", 18, 0.1),
    *(Case(kind, 16, e) for kind in ("AR(0.9)", "t3", "binary", "blocks", "factors") for e in (0.1, 1.0)),
    *(Case(kind, 16, e) for kind in ("leverage", "rare levels") for e in (1.0, 5.0)),
    *(Case(kind, 16, e, wide=True) for kind in ("single", "AR(0.9)", "skewed") for e in (0.1, 1.0)),
    *(Case(kind, 16, e, group=HELD_OUT) for kind in ("heavy errors", "powers", "mixed") for e in (0.1, 1.0, 5.0)),
    *(Case(kind, 16, e, wide=True, group=HELD_OUT) for kind in ("blocks", "powers") for e in (0.1, 1.0)),
    *(Case("AR(0.9)", 16, e, features=p, runs=10, group=HELD_OUT) for p in (3, 60, 118) for e in (0.3, 3.0)),
    *(Case(kind, 16, e, features=60, runs=10, group=HELD_OUT) for kind in ("binary", "blocks") for e in (0.3, 3.0)),
)


@dataclass(frozen=True)
class Line:
    """Means over data sets (simulated: mean l2 errors) or over draws of noise (real: test R^2, and errors as ``tables`` says)."""

    part: str  # "simulated" or "real"
    setting: str
    group: str  # what part it had in choosing constants
    columns: int
    rows: int
    epsilon: float
    runs: int
    without: float  # least squares without privacy
    weighed: float  # least squares without noise, with the weights that the last round gave to rows
    single_shrunk: float
    single_log_det: float
    clipped_shrunk: float  # a single release of rows clipped at a fifth of the squared bound
    clipped_log_det: float
    whitened_shrunk: float
    whitened_log_det: float
    whitened_se: float  # the standard error of `whitened_shrunk`
    difference_se: float  # that of its difference to the better single release at the whole bound
    single_error: float = math.nan  # real: of the better of the two estimators
    clipped_error: float = math.nan
    whitened_error: float = math.nan  # of `shrunk`
    weighed_error: float = math.nan

    @property
    def name(self) -> str:
        return f"{self.setting}, epsilon {self.epsilon:g}"


def simulated(case: Case) -> list[Line]:
    distances: dict[str, list[list[float]]] = {}
    key = zlib.crc32(f"{case.kind} {case.wide} {case.features}".encode())
    for run in range(case.runs):
        rng = np.random.default_rng([SEED, key, case.length, round(100 * case.epsilon), run])
        table = designs.draw(case.kind, 2**case.length, case.features, rng, wide=case.wide)
        several, ones = _releases(table, case.epsilon, SIMULATED_DELTA, rng)
        weights = last_weights(table.rows, several)
        gram, weighed = table.rows.T @ table.rows, (table.rows * weights[:, None]).T @ table.rows
        for name, (places, truth) in table.truths.items():
            ways = [_least_squares(gram, places), _least_squares(weighed, places)]
            ways += [b for release in (*ones, several) for b in coefficients(release, places)]
            units = table.units[places] / table.units[-1]
            distances.setdefault(name, []).append([float(np.linalg.norm((b - truth) * units)) for b in ways])
    wide = ", wide bounds" if case.wide else ""
    first = [case.group, len(table.half), 2**case.length, case.epsilon, case.runs]
    return [Line("simulated", name + wide, *first, *_means(np.array(errors), np.argmin)) for name, errors in distances.items()]


def real(name: str, epsilon: float, draws: int = DRAWS) -> Line:
    table = tables.load(name)
    places = list(range(table.rows.shape[1] - 1))
    r2, errors = [], []
    for run in range(draws):
        rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), round(100 * epsilon), run])
        several, ones = _releases(table, epsilon, REAL_DELTA, rng)
        weights = last_weights(table.rows, several)
        ways = [table.least_squares, _least_squares((table.rows * weights[:, None]).T @ table.rows, places)]
        ways += [b for release in (*ones, several) for b in coefficients(release, places)]
        r2.append([table.test_r2(b) for b in ways])
        errors.append([table.error(b) for b in ways])
    group = CHOSEN if name in tables.CHOSEN_ON else HELD_OUT if name in tables.FRESH else COMPARED
    of = np.mean(errors, axis=0)
    compared = min(of[2:4]), min(of[4:6]), of[6], of[1]
    return Line("real", name, group, *table.rows.shape[::-1], epsilon, draws, *_means(np.array(r2), np.argmax), *compared)


def _releases(table: designs.Table | tables.Real, epsilon: float, delta: float, rng: np.random.Generator) -> tuple:
    """The whitened release, and two single ones: at the whole bound and clipped hard."""
    seeds = [int(seed) for seed in rng.integers(2**62, size=3)]
    bound = table.squared_bound
    ones = []
    for seed, square in zip(seeds, (bound, HARD_CLIP * bound), strict=False):
        ones.append(single(_clipped(table, square), len(table.rows), square, epsilon, delta, seed))
    return whitened(table.rows, table.half, bound, epsilon, delta, seeds[2]), ones


def _clipped(table: designs.Table | tables.Real, square: float) -> Array:
    """A real table's is computed once."""
    if not isinstance(table, tables.Real):
        return clipped_gram(table.rows, square)
    if square not in table.grams:
        table.grams[square] = clipped_gram(table.rows, square)
    return table.grams[square]


def _least_squares(gram: Array, places: list[int]) -> Array:
    return np.linalg.lstsq(gram[np.ix_(places, places)], gram[places, -1], rcond=1e-12)[0]


def _means(errors: Array, best: Callable[[Array], np.integer]) -> list[float]:
    """The means over runs, and two standard errors."""
    means = errors.mean(axis=0)
    better = 2 + int(best(means[2:4]))
    several = errors[:, 6]
    spreads = [np.std(x, ddof=1) / math.sqrt(len(errors)) for x in (several, several - errors[:, better])]
    return [float(x) for x in (*means, *spreads)]


def everything() -> Iterator[Line]:
    with calibrated_once():
        for case in CASES:
            yield from simulated(case)
        for name in tables.TABLES:
            for epsilon in EPSILONS:
                yield real(name, epsilon)


LINES = sum(4 if case.kind == "multiple" else 1 for case in CASES) + len(tables.TABLES) * len(EPSILONS)


def write(file: Path, lines: list[Line]) -> None:
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in fields(Line)])
        for line in lines:
            writer.writerow([f"{v:.5g}" if isinstance(v, float) else v for v in astuple(line)])


def read(file: Path) -> list[Line]:
    kinds = {"str": str, "int": int, "float": float}
    with file.open(newline="") as lines:
        return [Line(**{f.name: kinds[str(f.type)](row[f.name]) for f in fields(Line)}) for row in csv.DictReader(lines)]
