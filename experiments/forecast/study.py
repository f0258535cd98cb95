"""Forecast against outcome: the expected privacy error of each mechanism, and that of releases of the tables themselves."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.planning.expected import expect
from dpgram.planning.ground import hypothetical
from dpgram.regression.channel import channel
from dpgram.regression.fit import shrunk, solve
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget
from experiments.coverage.releases import calibrated_once, claim
from experiments.forecast.tables import Table, tables

RELEASES = 200
LOWEST, HIGHEST = 0.7, 1.4  # where the ratio of forecast to outcome must lie


@dataclass(frozen=True)
class Cell:
    """Median privacy errors of a typical coefficient, in the units of the one that the forecast names."""

    table: str
    epsilon: float
    mechanism: str
    releases: int
    forecast: float
    realised: float

    @property
    def ratio(self) -> float:
        return self.forecast / self.realised


def everything(releases: int = RELEASES) -> Iterator[Cell]:
    with calibrated_once():
        for table in tables():
            yield from compared(table, releases)


def compared(table: Table, releases: int, mechanisms: Iterable[str] = registry.MECHANISMS) -> Iterator[Cell]:
    """Each mechanism at every epsilon of one table."""
    options = claim(np.array([gram for gram, _ in table.grams]), table.ground.schema.effective_row_bound)
    for epsilon in table.epsilons:
        for name in mechanisms:
            own = options if name == "noisy-inverse" else {}
            if own is None:
                continue  # no claim that a custodian could make
            budget = Budget(epsilon, table.delta)
            expected = expect(table.ground, registry.find(name), budget, table.rows, options=own)
            if expected.typical is not None:
                found = realised(table, name, budget, own, releases)
                yield Cell(table.name, epsilon, name, releases, expected.typical.privacy_error, found)


def realised(table: Table, name: str, budget: Budget, options: dict[str, float], releases: int) -> float:
    """The median over releases and coefficients of the distance to least squares on the same table's rows, not shrunk."""
    ground, mechanism = table.ground, registry.find(name)
    schema = ground.schema
    task = registry.task(mechanism, budget, schema.neighbours, len(schema.encoded), schema.effective_row_bound, options=options)
    errors = []
    for k in range(releases):
        gram, whole = table.grams[k % len(table.grams)]
        rng = SeededSource(zlib.crc32(f"{table.name} {name} {budget} {k}".encode()))
        outcome = hold(mechanism.start(task, rng), lambda question, gram=gram: GramAnswer(gram, table.rows))
        seen = channel(hypothetical(schema, outcome.gram, outcome.noise, budget, table.rows), ground.plan)
        errors.append(np.abs(shrunk(seen) - solve(whole, ground.plan)))
    return ground.in_typical_units(np.median(errors, axis=0))


def write(file: Path, cells: list[Cell]) -> None:
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in fields(Cell)])
        writer.writerows([f"{value:.5g}" if isinstance(value, float) else value for value in astuple(cell)] for cell in cells)


def read(file: Path) -> list[Cell]:
    with file.open(newline="") as lines:
        return [
            Cell(
                table=line["table"],
                epsilon=float(line["epsilon"]),
                mechanism=line["mechanism"],
                releases=int(line["releases"]),
                forecast=float(line["forecast"]),
                realised=float(line["realised"]),
            )
            for line in csv.DictReader(lines)
        ]
