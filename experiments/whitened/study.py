"""The grid of the study: simulated designs, of which some only confirm, and real tables, of which some only confirm."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np

from dpgram.accounting.gaussian import calibrate_mu
from dpgram.terms.budget import Budget
from experiments.whitened import designs, tables
from experiments.whitened.fit import repaired, shrunk
from experiments.whitened.protocol import single, whitened

SEED = 9_2026
EPSILONS = (0.1, 0.3, 1.0, 3.0, 5.0)
REAL_RUNS = 4


@dataclass(frozen=True)
class Case:
    """A design, 2^length rows, and how many data sets."""

    kind: str
    length: int
    epsilon: float
    runs: int = 30
    features: int = 20
    wide: bool = False
    held_out: bool = False


CASES = (
    *(Case("single", k, e) for k in (14, 16) for e in (0.1, 1.0)),
    Case("single", 18, 0.1, runs=10),
    *(Case("multiple", 16, e) for e in (0.1, 1.0)),
    Case("multiple", 18, 0.1, runs=4),
    *(Case(kind, 16, e, runs=15) for kind in ("AR(0.9)", "t3", "binary") for e in (0.1, 1.0)),
    *(Case("AR(0.9)", 16, e, wide=True, runs=10) for e in (0.1, 1.0)),
    *(Case(kind, 15, e, runs=10) for kind in ("leverage", "rare levels") for e in (1.0, 5.0)),
    *(Case(kind, 15, e, runs=10, held_out=True) for kind in ("blocks", "factors", "heavy errors") for e in (0.1, 1.0, 5.0)),
    *(Case("blocks", 16, e, wide=True, runs=10, held_out=True) for e in (0.1, 1.0)),
    *(Case("skewed", 15, e, wide=True, runs=10, held_out=True) for e in (1.0, 5.0)),
    *(Case("AR(0.9)", 15, e, features=p, runs=3, held_out=True) for p in (3, 60, 118) for e in (0.3, 3.0)),
)


@dataclass(frozen=True)
class Line:
    """Means over data sets (simulated: mean l2 errors) or over draws of noise (real: test R^2 and the ratio of errors, see ``tables``)."""

    part: str  # "simulated" or "real"
    setting: str
    held_out: bool
    columns: int
    rows: int
    epsilon: float
    runs: int
    without: float  # least squares without privacy: its error, or its test R^2
    single_shrunk: float
    single_log_det: float
    whitened_shrunk: float
    whitened_log_det: float
    single_error: float = math.nan  # real: the better of the two single estimators' mean ratio of errors
    whitened_error: float = math.nan  # real: of `shrunk`


@cache
def mu_of(epsilon: float, delta: float) -> float:
    return calibrate_mu(Budget(epsilon, delta))


def simulated(case: Case) -> list[Line]:
    found: dict[str, list[list[float]]] = {}
    for run in range(case.runs):
        key = zlib.crc32(f"{case.kind} {case.wide} {case.features}".encode())
        rng = np.random.default_rng([SEED, key, case.length, round(100 * case.epsilon), run])
        table = designs.draw(case.kind, 2**case.length, case.features, rng, wide=case.wide)
        mu = mu_of(case.epsilon, math.exp(-9))
        one = single(table.rows, table.squared_bound, mu, rng)
        several = whitened(table.rows, table.half, table.squared_bound, mu, rng)
        gram, label = table.rows.T @ table.rows, table.rows.shape[1] - 1
        for name, (places, truth) in table.truths.items():
            ways = [np.linalg.solve(gram[np.ix_(places, places)], gram[places, label])]
            ways += [shrunk(one, places, label), repaired(one, places, label, 0.25)]
            ways += [shrunk(several, places, label), repaired(several, places, label)]
            units = table.units[places] / table.units[-1]
            found.setdefault(name, []).append([float(np.linalg.norm((b - truth) * units)) for b in ways])
    columns = len(table.half)
    wide = ", wide bounds" if case.wide else ""
    return [
        Line(
            "simulated", name + wide, case.held_out, columns, 2**case.length, case.epsilon, case.runs, *np.mean(errors, axis=0)
        )
        for name, errors in found.items()
    ]


def real(name: str, epsilon: float) -> Line:
    table = tables.load(name)
    d, mu, found = table.rows.shape[1], mu_of(epsilon, 1e-6), []
    places = list(range(d - 1))
    for run in range(REAL_RUNS):
        rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), round(100 * epsilon), run])
        one = single(table.rows, table.squared_bound, mu, rng)
        several = whitened(table.rows, table.half, table.squared_bound, mu, rng)
        ways = [shrunk(one, places, d - 1), repaired(one, places, d - 1, 0.25), shrunk(several, places, d - 1)]
        ways.append(repaired(several, places, d - 1))
        found.append([f(b) for f in (table.test_r2, table.error) for b in ways])
    means = np.mean(found, axis=0)
    held_out = name not in tables.CHOSEN_ON
    without = table.test_r2(table.least_squares)
    numbers = (*means[:4], min(means[4:6]), means[6])
    return Line("real", name, held_out, d, len(table.rows), epsilon, REAL_RUNS, without, *numbers)


def everything() -> Iterator[Line]:
    for case in CASES:
        yield from simulated(case)
    for name in tables.TABLES:
        for epsilon in EPSILONS:
            yield real(name, epsilon)


def write(file: Path, lines: list[Line]) -> None:
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in fields(Line)])
        for line in lines:
            writer.writerow([f"{v:.5g}" if isinstance(v, float) else v for v in astuple(line)])


def read(file: Path) -> list[Line]:
    kinds = {"str": str, "bool": lambda text: text == "True", "int": int, "float": float}
    with file.open(newline="") as lines:
        return [Line(**{f.name: kinds[str(f.type)](row[f.name]) for f in fields(Line)}) for row in csv.DictReader(lines)]
