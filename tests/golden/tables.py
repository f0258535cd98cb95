"""The tables behind the goldens, and what is declared about each. Only public names are used, here and beside: any source will do."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dpgram

REPLACE, ADD_REMOVE = "replace", "add-remove"


@dataclass(frozen=True)
class Table:
    """A table, and the questions that a reader of its releases asks."""

    schema: Callable[..., dpgram.Schema]
    cells: Callable[[], dict]
    target: str
    features: tuple[str, ...]  # a few of them
    joint: tuple[str, ...]  # tested together
    shown: tuple[str, ...]  # columns whose moments are kept
    new: dict  # rows to predict for
    formula: str


def small_schema(**changes) -> dpgram.Schema:
    """Two numbers, one category, one truth value."""
    columns = [
        dpgram.Numeric("x", -5, 5, missing="midpoint"),
        dpgram.Numeric("y", -10, 30, missing="midpoint"),
        dpgram.Categorical("c", ["a", "b"], other=True),
        dpgram.Boolean("b"),
    ]
    return dpgram.Schema(**{"unit": "person", "columns": columns, **changes})


def small_cells() -> dict:
    rng, rows = np.random.default_rng(0), 1500
    x, c, b = rng.normal(size=rows), rng.choice(["a", "b", "z"], rows), rng.random(rows) < 0.4
    return {"x": x, "y": 5 + 2 * x + 3 * (c == "b") - 4 * b + rng.normal(size=rows), "c": c, "b": b}


def kinds_schema(**changes) -> dpgram.Schema:
    """A column of every kind, declared and derived; missing cells that are filled, and that are a level."""
    fields = {
        "unit": "visit",
        "columns": [
            dpgram.Numeric("age", 0, 120, missing="midpoint"),
            dpgram.Numeric("weight", 30, 200, missing=75),
            dpgram.Numeric("cost", -100, 900, missing="midpoint"),
            dpgram.Categorical("region", ["north", "south", "west"], other=True, missing="level"),
            dpgram.Boolean("urban", missing=True),
            dpgram.Date("seen", "2021-01-01", "2022-01-01", missing="midpoint"),
        ],
        "derived": [
            dpgram.Product("age_urban", ["age", "urban"]),
            dpgram.Product("region_weight", ["region", "weight"]),
            dpgram.Power("age_squared", "age", 2),
            dpgram.Log1p("log_weight", "weight", missing=4.0),
            dpgram.Interval("in_summer", "seen", "2021-06-01", "2021-09-01"),
            dpgram.DatePart("quarter", "seen", "quarter", levels=True, missing="level"),
            dpgram.DatePart("hour", "seen", "hour"),
        ],
        **changes,
    }
    return dpgram.Schema(**fields)


def kinds_cells() -> dict:
    rng, rows = np.random.default_rng(1), 3000
    age, weight = rng.uniform(10, 130, rows), rng.normal(75, 14, rows)  # some are beyond their bounds
    region = rng.choice(["north", "south", "west", "isle"], rows)
    urban = rng.random(rows) < 0.6
    hours = rng.integers(-500, 370 * 24, rows)
    seen: list = [datetime.datetime(2021, 1, 1) + datetime.timedelta(hours=int(hour)) for hour in hours]
    cost = 40 + 3 * age + 0.5 * weight + 60 * (region == "south") - 30 * urban + rng.normal(0, 60, rows)
    weight[::11] = np.nan
    for row in range(0, rows, 17):
        seen[row] = None
    named = [None if row % 13 == 0 else str(one) for row, one in enumerate(region)]
    return {"age": age, "weight": weight, "cost": cost, "region": named, "urban": urban, "seen": seen}


def origin_schema(**changes) -> dpgram.Schema:
    """No intercept, and bounds that are not symmetric about zero."""
    columns = [
        dpgram.Numeric("u", 0, 3, missing="midpoint"),
        dpgram.Numeric("v", -1, 4, missing="midpoint"),
        dpgram.Numeric("w", -2, 2, missing="midpoint"),
        dpgram.Numeric("t", -20, 40, missing="midpoint"),
    ]
    return dpgram.Schema(**{"unit": "person", "columns": columns, "intercept": False, **changes})


def origin_cells() -> dict:
    rng, rows = np.random.default_rng(2), 1200
    u, v, w = rng.uniform(0, 3, rows), rng.normal(1, 1, rows), rng.normal(0, 0.7, rows)
    return {"u": u, "v": v, "w": w, "t": 4 * u - 2 * v + 0.5 * w + rng.normal(size=rows)}


def short_schema(**changes) -> dpgram.Schema:
    """More columns than its table has rows."""
    columns = [
        *(dpgram.Numeric(f"x{k}", -3, 3, missing="midpoint") for k in range(10)),
        dpgram.Numeric("y", -12, 12, missing="midpoint"),
    ]
    return dpgram.Schema(**{"unit": "person", "columns": columns, **changes})


def short_cells() -> dict:
    rng, rows = np.random.default_rng(3), 9
    x = rng.normal(size=(10, rows))
    return {**{f"x{k}": x[k] for k in range(10)}, "y": x[0] - x[1] + 0.1 * rng.normal(size=rows)}


def singular_schema(**changes) -> dpgram.Schema:
    """Two columns with the same cells, and one that is constant."""
    columns = [dpgram.Numeric(name, -4, 4, missing="midpoint") for name in ("p", "again", "still", "q")] + [
        dpgram.Numeric("r", -20, 20, missing="midpoint")
    ]
    return dpgram.Schema(**{"unit": "person", "columns": columns, "row_bound": 1.5, **changes})


def singular_cells() -> dict:
    rng, rows = np.random.default_rng(4), 1000
    p, q = rng.normal(size=rows), rng.normal(size=rows)
    return {"p": p, "again": p.copy(), "still": np.full(rows, 2.0), "q": q, "r": 3 * p - 2 * q + rng.normal(size=rows)}


DAY = datetime.datetime(2021, 5, 17, 13, 30)
TABLES = {
    "small": Table(
        small_schema,
        small_cells,
        target="y",
        features=("x", "c[b]"),
        joint=("x", "c"),
        shown=("x", "y", "c", "b"),
        new={"x": [0.5, -9.0, None], "c": ["b", "a", "never seen"], "b": [True, None, False]},
        formula="y ~ x + b",
    ),
    "kinds": Table(
        kinds_schema,
        kinds_cells,
        target="cost",
        features=("age", "region", "urban", "hour"),
        joint=("region", "quarter", "age"),
        shown=("age", "weight", "cost", "region", "log_weight", "quarter"),
        new={
            "age": [41.5, 500.0, None],
            "weight": [70.0, None, 20.0],
            "cost": [250.0, 250.0, None],
            "region": ["south", None, "isle"],
            "urban": [True, None, False],
            "seen": [DAY, None, datetime.datetime(1960, 1, 1)],
        },
        formula="cost ~ age + region + quarter",
    ),
    "origin": Table(
        origin_schema,
        origin_cells,
        target="t",
        features=("u", "w"),
        joint=("u", "v"),
        shown=("u", "t"),
        new={"u": [1.0, 7.0], "v": [0.5, None], "w": [0.0, 1.0]},
        formula="t ~ u + v - 1",
    ),
    "short": Table(
        short_schema,
        short_cells,
        target="y",
        features=("x0", "x1"),
        joint=("x0", "x9"),
        shown=("x0", "x1", "y"),
        new={f"x{k}": [0.1 * k, -1.0] for k in range(10)},
        formula="y ~ x0 + x5",
    ),
    "singular": Table(
        singular_schema,
        singular_cells,
        target="r",
        features=("p", "q"),
        joint=("p", "again"),
        shown=("p", "again", "still", "r"),
        new={"p": [1.0, -1.0], "again": [1.0, 1.0], "still": [2.0, 0.0], "q": [0.0, 9.0]},
        formula="r ~ p + still + q",
    ),
}
