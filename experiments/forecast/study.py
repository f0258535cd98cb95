"""Forecast against outcome: the expected privacy error of each mechanism, and that of releases of the tables themselves."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.linalg.scales import grams
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, Outcome, hold
from dpgram.planning.expected import expect
from dpgram.regression.fit import fit_linear, solve
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.scales import SWITCH
from experiments.coverage.releases import calibrated_once, claim
from experiments.forecast.tables import Blocks, Table, shrunk_gram, tables

RELEASES = 200
# Of a mechanism that reads the rows again for each of its rounds there are fewer releases: as many as read so many rows in a round.
ROWS_IN_ALL, FEWEST, MOST = 2**22, 20, 40
LARGEST = 2**19  # rows of a table that such a mechanism is tried on
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


def everything(releases: int = RELEASES, mechanisms: Iterable[str] = registry.MECHANISMS) -> Iterator[Cell]:
    mechanisms = list(mechanisms)
    only_rounds = all(registry.find(name).several for name in mechanisms)
    with calibrated_once():
        for table in tables(LARGEST if only_rounds else None):
            yield from compared(table, releases, mechanisms)


def compared(table: Table, releases: int, mechanisms: Iterable[str] = registry.MECHANISMS) -> Iterator[Cell]:
    """Each mechanism at every epsilon of one table."""
    mechanisms = list(mechanisms)
    options = claim(np.array([gram for gram, _ in table.grams]), table.ground.schema.effective_row_bound)
    for epsilon in table.epsilons:
        for name in mechanisms:
            own = options if name == "noisy-inverse" else {}
            if own is None:
                continue  # no claim that a custodian could make
            if registry.find(name).several and table.rows > LARGEST:
                continue
            budget = Budget(epsilon, table.delta)
            expected = expect(table.ground, registry.find(name), budget, table.rows, options=own)
            if expected.typical is not None:
                count = min(releases, fewer(table.rows)) if registry.find(name).several else releases
                outcome = realised(table, name, budget, own, count)
                yield Cell(table.name, epsilon, name, count, expected.typical.privacy_error, outcome)


def fewer(rows: int) -> int:
    """How many releases are made where each reads the table several times."""
    return max(FEWEST, min(MOST, ROWS_IN_ALL // rows))


def realised(table: Table, name: str, budget: Budget, options: dict[str, float], releases: int) -> float:
    """The median over releases and coefficients of the distance to least squares on the same table's rows, not shrunk."""
    ground = table.ground
    mechanism = registry.find(name)
    schema = ground.schema
    dim = len(schema.encoded)
    bound = schema.effective_row_bound
    task = registry.task(mechanism, budget, schema.neighbours, dim, bound, options=options)
    errors = []
    for k in range(releases):
        place = k % len(table.grams)
        if mechanism.several:
            outcome = in_rounds(table.blocks, place, table.rows, dim, bound, name, budget, k)
        else:
            rng = SeededSource(zlib.crc32(f"{table.name} {name} {budget} {k}".encode()))
            answer = GramAnswer(table.grams[place][0], table.rows)
            outcome = hold(mechanism.start(task, rng), lambda question, answer=answer: answer)
        evidence = Evidence.made(schema, outcome.gram, outcome.noise, table.rows)
        private = fit_linear(evidence, ground.design, "shrunk")
        errors.append(np.abs(private - solve(table.grams[place][1], ground.design)))
    return ground.in_typical_units(np.median(errors, axis=0))


@lru_cache(maxsize=256)
def in_rounds(blocks: Blocks, place: int, rows: int, dim: int, bound: float, name: str, budget: Budget, seed: int) -> Outcome:
    """A release under REPLACE by a mechanism that asks for sums of mapped rows; what an engine would answer, but in floats.

    Kept, because several regressions are read from one table's releases."""

    def answer(question: GramQuestion) -> GramAnswer:
        through = np.eye(dim) if question.through is None else question.through.matrix
        mapped = (block @ through.T for block in blocks(place))
        if question.through is None:
            return GramAnswer(shrunk_gram(mapped, question.row_bound), rows)
        gram, *outer = grams(mapped, question.scales, SWITCH)
        return GramAnswer(gram, rows, tuple(outer))

    mechanism = registry.find(name)
    task = registry.task(mechanism, budget, Neighbours.REPLACE, dim, bound, intercept=True)
    rng = SeededSource(zlib.crc32(f"{name} {budget} {rows} {seed}".encode()))
    return hold(mechanism.start(task, rng), answer)


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """By table and epsilon, as they come, and by mechanism as in the registry: the order of a whole run."""
    cells = list(cells)
    tables_, names = list(dict.fromkeys(cell.table for cell in cells)), list(registry.MECHANISMS)
    return sorted(cells, key=lambda cell: (tables_.index(cell.table), cell.epsilon, names.index(cell.mechanism)))


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
