"""Tables whose releases were forecast: the paper's, and the bundled flights. Each has a public sample, and Grams of its own rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from dpgram.curator import encoded_rows
from dpgram.demo.script import MODELS, SCHEMA, TABLE
from dpgram.planning.ground import Ground, ground
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema
from experiments.sheffet2015 import settings
from experiments.sheffet2015.settings import ERROR_SD, FEATURES

Array = np.ndarray

SEED = 8_2026
SAMPLE = 2_000  # rows of the flights that were public
LAW = 1 << 17  # rows that stand for the paper's law, which is known
TABLES = 40  # of each of the paper's settings
BLOCK = 1 << 15
FLIGHTS_DELTA = 1e-7


@dataclass(frozen=True)
class Unbounded(Schema):
    """The paper's columns are normal variates, which no bounds hold: only rows are bounded."""

    @property
    def largest_norm(self) -> float:
        return math.inf


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of it that were public give the ground; (shrunk, whole) Grams of all rows, one pair or more, are what is released."""

    name: str
    ground: Ground
    rows: int
    grams: list[tuple[Array, Array]]
    epsilons: tuple[float, ...]
    delta: float


def tables() -> Iterator[Table]:
    for setting, exponents, epsilons in (
        (settings.SINGLE, (14, 17, 20), (0.05, 0.1, 0.5)),
        (settings.MULTIPLE, (14, 18), (0.1,)),
    ):
        for exponent in exponents:
            yield paper(setting, exponent, epsilons)
    yield from flights()


def paper(setting: settings.Setting, exponent: int, epsilons: tuple[float, ...]) -> Table:
    """The paper's law, with one draw of its coefficients: the forecast's rows and every released table's are drawn apart."""
    schema = Unbounded(
        unit="row", columns=tuple(Numeric(f"c{j}", -1, 1) for j in range(1, setting.dim)), row_bound=setting.row_bound
    )
    features = [f"c{j}" for j in range(1, 1 + FEATURES)]
    sample = np.concatenate(list(_paper_rows(setting, LAW, exponent, 0)))
    grams = [_grams(_paper_rows(setting, 2**exponent, exponent, 1 + k), setting.dim, setting.row_bound) for k in range(TABLES)]
    name = f"paper, {setting.name}, n = 2^{exponent}"
    return Table(name, ground(schema, sample, f"c{setting.dim - 1}", features), 2**exponent, grams, epsilons, settings.DELTA)


def _paper_rows(setting: settings.Setting, rows: int, exponent: int, table: int) -> Iterator[Array]:
    beta = np.random.default_rng([SEED, setting.labels, exponent]).uniform(-1, 1, (1 + FEATURES, setting.labels))
    rng = np.random.default_rng([SEED, setting.labels, exponent, table])
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        features = np.column_stack([np.ones(count), rng.standard_normal((count, FEATURES))])
        yield np.column_stack([features, features @ beta + ERROR_SD * rng.standard_normal((count, setting.labels))])


def flights() -> Iterator[Table]:
    """The bundled table: 2,000 rows of it, drawn at random, are the public sample. Several regressions, and a smaller row bound."""
    schema, table = Schema.load(SCHEMA), pq.read_table(TABLE)
    rows = encoded_rows(table, schema)
    chosen = np.random.default_rng(SEED).choice(len(rows), SAMPLE, replace=False)
    whole = _grams(iter([rows]), rows.shape[1], schema.effective_row_bound)
    for target, features in MODELS:
        found = ground(schema, rows[chosen], target, features)
        yield Table(f"flights, {target} on {len(features)} columns", found, len(rows), [whole], (0.1, 1.0, 5.0), FLIGHTS_DELTA)
    everything = ground(schema, rows[chosen], "arr_delay")
    yield Table("flights, arr_delay on all columns", everything, len(rows), [whole], (0.1, 1.0, 5.0), FLIGHTS_DELTA)
    bound = float(np.median(everything.norms()))
    shrunk = _grams(iter([rows]), rows.shape[1], bound)
    name = "flights, arr_delay on all columns, half of the rows shrunk"
    yield Table(name, everything.with_bound(bound), len(rows), [shrunk], (1.0,), FLIGHTS_DELTA)


def _grams(blocks: Iterator[Array], dim: int, row_bound: float) -> tuple[Array, Array]:
    """The Gram of the rows shrunk to the bound, and of the rows as they are."""
    shrunk, whole = np.zeros((dim, dim)), np.zeros((dim, dim))
    for block in blocks:
        whole += block.T @ block
        short = block * np.minimum(1.0, row_bound / np.linalg.norm(block, axis=1))[:, None]
        shrunk += short.T @ short
    return shrunk, whole
