"""Settings that go through a schema: a table with categories, and real tables whose rows are drawn with replacement."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease
from dpgram.engines.encoded import encoded_rows
from dpgram.regression.design import Design, design
from dpgram.regression.fit import solve
from dpgram.terms.columns import Boolean, Categorical, Numeric
from dpgram.terms.schema import Schema
from experiments.coverage.measure import Truth
from experiments.coverage.releases import make_release
from experiments.coverage.settings import SEED

Array = np.ndarray

DELTA = 1e-6


@dataclass(frozen=True)
class Table(ABC):
    """A setting that makes its own releases; ``release`` also says what is true of the law the rows were drawn from."""

    name: str
    rows: int
    epsilons: tuple[float, ...]

    @abstractmethod
    def release(self, index: int, mechanism: str, epsilon: float) -> tuple[GramRelease, Truth]:
        """The release of data set ``index``, and what is true of it."""

    @abstractmethod
    def design(self, release: GramRelease) -> Design:
        """The regression that is asked of it."""

    def seed(self, index: int, mechanism: str, epsilon: float) -> int:
        return noise_seed(self.name, self.rows, mechanism, epsilon) + index


def noise_seed(*cell: object) -> int:
    """A seed of its own for each cell, so that no two cells share their noise."""
    return zlib.crc32(repr(cell).encode()) * 10_000


@dataclass(frozen=True)
class Indicators(Table):
    """Salary-like: two numbers, a truth value and a category of unequal levels, through ``dpgram.release`` on a table."""

    chances: tuple[float, ...] = (0.4, 0.3, 0.15, 0.1, 0.05)  # of the levels

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple("abcdefghijklmnopqrstuvwxyz"[: len(self.chances)])

    @property
    def rare(self) -> tuple[int, ...]:
        """Places of the coefficients of levels with a handful of rows each."""
        return tuple(3 + place for place, chance in enumerate(self.chances) if place and chance * self.rows < 50)

    @cached_property
    def schema(self) -> Schema:
        return Schema(
            unit="row",
            columns=[
                Numeric("age", 18, 70, missing="midpoint"),
                Numeric("hours", 0, 60, missing="midpoint"),
                Boolean("night"),
                Categorical("place", self.levels),
                Numeric("pay", 0, 100, missing="midpoint"),
            ],
        )

    def release(self, index: int, mechanism: str, epsilon: float) -> tuple[GramRelease, Truth]:
        rng = np.random.default_rng([SEED, zlib.crc32(self.name.encode()), self.rows, index])
        n = self.rows
        place = rng.choice(len(self.chances), self.rows, p=self.chances)
        effects = np.concatenate([[0.0], rng.uniform(-5, 5, len(self.chances) - 1)])
        slopes = rng.uniform((-0.3, 0.0, -5.0), (0.3, 0.5, 5.0))
        age = rng.uniform(20, 65, n)
        hours = np.clip(rng.normal(35, 8, n), 0, 60)
        night = rng.random(n) < 0.2
        pay = 40 + slopes[0] * (age - 42) + slopes[1] * (hours - 35) + slopes[2] * night + effects[place] + rng.normal(0, 5, n)
        table = {"age": age, "hours": hours, "night": night, "place": np.array(self.levels)[place], "pay": pay}
        made = dpgram.release(
            table,
            self.schema,
            epsilon=epsilon,
            delta=DELTA,
            mechanism=mechanism,
            insecure_seed=self.seed(index, mechanism, epsilon),
        )
        intercept = 40 - 42 * slopes[0] - 35 * slopes[1]
        return made, Truth(np.concatenate([[intercept], slopes, effects[1:]]), 25.0)

    def design(self, release: GramRelease) -> Design:
        return design(release.schema, "pay", None, None)


@dataclass(frozen=True)
class Resampled(Table):
    """A real table as the law itself: data sets are rows drawn from it with replacement, and least squares on it is the truth."""

    read: Callable[[], tuple[object, Schema]]
    target: str
    features: tuple[str, ...] | None = None
    grams: dict[int, Array] = field(default_factory=dict, compare=False)

    @cached_property
    def known(self) -> tuple[Schema, Array]:
        """The schema, and the encoded rows under its row bound (which is the largest norm possible: none is shrunk)."""
        table, schema = self.read()
        return schema, encoded_rows(table, schema)

    def release(self, index: int, mechanism: str, epsilon: float) -> tuple[GramRelease, Truth]:
        schema, z = self.known
        if index not in self.grams:
            rng = np.random.default_rng([SEED, zlib.crc32(self.name.encode()), self.rows, index])
            times = np.bincount(rng.integers(0, len(z), self.rows), minlength=len(z))
            self.grams[index] = z.T @ (times[:, None] * z)
        made = make_release(
            self.grams[index],
            schema=schema,
            rows=self.rows,
            row_bound=schema.effective_row_bound,
            epsilon=epsilon,
            mechanism=mechanism,
            seed=self.seed(index, mechanism, epsilon),
            delta=DELTA,
        )
        return made, self.truth(made)

    def truth(self, release: GramRelease) -> Truth:
        if -1 not in self.grams:
            self.grams[-1] = self.known[1].T @ self.known[1] * (self.rows / len(self.known[1]))
        plan = self.design(release)
        gram = self.grams[-1]
        own = solve(gram, plan)
        u = plan.label - plan.regressors @ np.linalg.solve(plan.to_own_units, own - plan.offset)
        about = plan.label.copy()
        about[0] -= gram[0] @ plan.label / gram[0, 0]
        left = float(u @ gram @ u)
        return Truth(own, left / self.rows * plan.label_unit**2, 1 - left / float(about @ gram @ about))

    def design(self, release: GramRelease) -> Design:
        return design(release.schema, self.target, self.features, None)


def _flights() -> tuple[object, Schema]:
    home = files("dpgram.demo")
    return str(home / "flights.parquet"), Schema.load(str(home / "flights.toml"))


def _bundled(
    loader: str, bounds: Sequence[tuple[str, float, float]], target: tuple[str, float, float] | None
) -> tuple[object, Schema]:
    """A table that comes with scikit-learn, with bounds that its description allows anybody to declare."""
    from sklearn import datasets

    loaded = getattr(datasets, loader)()
    names = [str(name) for name in loaded.feature_names]
    table = {name: loaded.data[:, names.index(name)] for name, _, _ in bounds}
    columns = [Numeric(*bound, missing="midpoint") for bound in bounds]
    if target is not None:
        table[target[0]] = loaded.target.astype(float)
        columns.append(Numeric(*target, missing="midpoint"))
    return table, Schema(unit="person", columns=columns)


def _diabetes() -> tuple[object, Schema]:
    names = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
    return _bundled("load_diabetes", [(name, -0.2, 0.2) for name in names], ("progression", 0, 400))


def _cancer() -> tuple[object, Schema]:
    bounds = [
        ("mean radius", 5, 30),
        ("mean texture", 5, 40),
        ("mean perimeter", 30, 200),
        ("mean smoothness", 0.04, 0.2),
        ("mean compactness", 0, 0.4),
        ("mean concavity", 0, 0.5),
        ("mean area", 0, 2600),
    ]
    return _bundled("load_breast_cancer", bounds, None)


FEW = 0.0006  # of a level with some ten rows of 2^14

RARE = (
    Indicators("one rare level", 2**14, (0.3, 1.0, 3.0), (0.5, 0.3, 0.2 - FEW, FEW)),
    Indicators("eight rare levels of ten", 2**14, (0.3, 1.0, 3.0), (0.6, 0.4 - 8 * FEW, *(FEW,) * 8)),
)
ALL: tuple[Table, ...] = (
    Indicators("indicators", 2**14, (1.0, 3.0)),
    Resampled("flights, arrival delay on all", 327_346, (0.5, 1.0, 3.0), _flights, "arr_delay"),
    Resampled(
        "flights, arrival delay on four",
        327_346,
        (0.5, 1.0, 3.0),
        _flights,
        "arr_delay",
        ("dep_delay", "distance", "hour", "origin"),
    ),
    Resampled("diabetes", 442, (10.0, 100.0), _diabetes, "progression"),
    Resampled("breast cancer, area on six", 569, (10.0, 100.0), _cancer, "mean area"),
)
