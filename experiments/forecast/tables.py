"""Tables whose releases were forecast: the paper's, and the bundled flights. Each has a public sample, and Grams of its own rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow.parquet as pq

from dpgram.demo.script import MODELS, SCHEMA, TABLE
from dpgram.engines.encoded import encoded_rows
from dpgram.planning.assumed import Assumptions, assumed_table, default_target
from dpgram.planning.ground import Ground, ground_of
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema
from experiments.sheffet2015 import settings
from experiments.sheffet2015.settings import ERROR_SD, FEATURES

Array = np.ndarray
Blocks = Callable[[int], Iterable[Array]]

SEED = 8_2026
SAMPLE = 2_000  # rows of the flights that were public
LAW = 1 << 17  # rows that stand for the paper's law, which is known
TABLES = 40  # of each of the paper's settings
BLOCK = 1 << 15
FLIGHTS_DELTA = 1e-7
ASSUMED_ROWS, ASSUMED_TABLES = 50_000, 10


@dataclass(frozen=True)
class Unbounded(Schema):
    """The paper's columns are normal variates, which no bounds hold: only rows are bounded."""

    @property
    def largest_norm(self) -> float:
        return math.inf


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of it that were public give the ground; (shrunk, whole) Grams of all rows, one pair or more, are what is released.

    A mechanism of several rounds asks for the rows themselves: ``blocks`` gives those that the pair at a place was made of."""

    name: str
    ground: Ground
    rows: int
    grams: list[tuple[Array, Array]]
    epsilons: tuple[float, ...]
    delta: float
    blocks: Blocks


def tables(largest: int | None = None) -> Iterator[Table]:
    """All tables, or those of at most ``largest`` rows."""
    for setting, exponents, epsilons in (
        (settings.SINGLE, (14, 17, 20), (0.05, 0.1, 0.5)),
        (settings.MULTIPLE, (14, 18), (0.1,)),
    ):
        for exponent in exponents:
            if largest is None or 2**exponent <= largest:
                yield paper(setting, exponent, epsilons)
    yield from flights()
    yield assumed()


def assumed() -> Table:
    """Tables that are what a plan assumes by default, of the flights' columns: each drawn apart from the rows that were forecast from."""
    schema = Schema.load(SCHEMA)
    law = Assumptions()
    target = default_target(schema)
    drawn = [
        encoded_rows(assumed_table(schema, law, target, rows=ASSUMED_ROWS, seed=1 + k), schema) for k in range(ASSUMED_TABLES)
    ]
    law_ground = ground_of(schema, encoded_rows(assumed_table(schema, law, target), schema), target)
    grams = [_grams([rows], schema.effective_row_bound) for rows in drawn]

    def blocks(place: int) -> list[Array]:
        return [drawn[place]]

    return Table("assumed, the flights' columns", law_ground, ASSUMED_ROWS, grams, (0.1, 1.0, 5.0), FLIGHTS_DELTA, blocks)


def paper(setting: settings.Setting, exponent: int, epsilons: tuple[float, ...]) -> Table:
    """The paper's law, with one draw of its coefficients: the forecast's rows and every released table's are drawn apart."""
    schema = Unbounded(
        unit="row",
        columns=tuple(Numeric(f"c{j}", -1, 1, missing="midpoint") for j in range(1, setting.dim)),
        row_bound=setting.row_bound,
    )
    features = [f"c{j}" for j in range(1, 1 + FEATURES)]
    sample = np.concatenate(list(_paper_rows(setting, LAW, exponent, 0)))
    grams = [_grams(_paper_rows(setting, 2**exponent, exponent, 1 + k), setting.row_bound) for k in range(TABLES)]
    name = f"paper, {setting.name}, n = 2^{exponent}"
    sample_ground = ground_of(schema, sample, f"c{setting.dim - 1}", features)

    @lru_cache(maxsize=1)  # all rounds of a release read the same rows
    def blocks(place: int) -> list[Array]:
        return list(_paper_rows(setting, 2**exponent, exponent, 1 + place))

    return Table(name, sample_ground, 2**exponent, grams, epsilons, settings.DELTA, blocks)


def _paper_rows(setting: settings.Setting, rows: int, exponent: int, table: int) -> Iterator[Array]:
    beta = np.random.default_rng([SEED, setting.labels, exponent]).uniform(-1, 1, (1 + FEATURES, setting.labels))
    rng = np.random.default_rng([SEED, setting.labels, exponent, table])
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        features = np.column_stack([np.ones(count), rng.standard_normal((count, FEATURES))])
        yield np.column_stack([features, features @ beta + ERROR_SD * rng.standard_normal((count, setting.labels))])


def flights() -> Iterator[Table]:
    """The bundled table: 2,000 rows of it, drawn at random, are the public sample. Several regressions, and a smaller row bound."""
    schema = Schema.load(SCHEMA)
    table = pq.read_table(TABLE)
    rows = encoded_rows(table, schema)
    chosen = np.random.default_rng(SEED).choice(len(rows), SAMPLE, replace=False)
    parts = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    whole = _grams(iter([rows]), schema.effective_row_bound)

    def blocks(place: int) -> list[Array]:
        return parts

    def table_of(name: str, table_ground: Ground, epsilons: tuple[float, ...], grams: tuple[Array, Array] = whole) -> Table:
        return Table(f"flights, {name}", table_ground, len(rows), [grams], epsilons, FLIGHTS_DELTA, blocks)

    for target, features in MODELS:
        table_ground = ground_of(schema, rows[chosen], target, features)
        yield table_of(f"{target} on {len(features)} columns", table_ground, (0.1, 1.0, 5.0))
    everything = ground_of(schema, rows[chosen], "arr_delay")
    yield table_of("arr_delay on all columns", everything, (0.1, 1.0, 5.0))
    bound = float(np.median(everything.norms()))
    half = _grams(iter([rows]), bound)
    yield table_of("arr_delay on all columns, half of the rows shrunk", everything.with_bound(bound), (1.0,), half)


def _grams(blocks: Iterable[Array], row_bound: float) -> tuple[Array, Array]:
    """The Gram of the rows shrunk to the bound, and of the rows as they are."""
    parts = [(shrunk_gram([block], row_bound), block.T @ block) for block in blocks]
    return sum(shrunk for shrunk, _ in parts), sum(whole for _, whole in parts)  # type: ignore[return-value]


def shrunk_gram(blocks: Iterable[Array], row_bound: float) -> Array:
    """The Gram of the rows, each shrunk to the bound."""
    total: Array | None = None
    for block in blocks:
        short = block * np.minimum(1.0, row_bound / np.sqrt(np.einsum("ij,ij->i", block, block)))[:, None]
        total = short.T @ short if total is None else total + short.T @ short
    assert total is not None
    return total
