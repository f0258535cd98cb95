"""Releases for tests of the page: every mechanism, every kind of column, and one that is hard to lay out."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np

import dpgram
from dpgram.terms.scales import first_scales
from tests.releases import whitened_release

MECHANISMS = {
    "gaussian-noise": {},
    "wishart-noise": {},
    "gaussian-sketch": {"sketch_rows": 200},
    "gaussian-sketch-adaptive": {"sketch_rows": 200},
    "inverse-wishart": {"degrees_of_freedom": 120},
    "inverse-wishart-adaptive": {"degrees_of_freedom": 120},
    "noisy-inverse": {"rho": 1.0},
    "whitened-noise": {},
}
CELLS = {"age": 41.5, "weight": 70.0, "region": "south", "urban": True, "seen": "2021-05-17T13:30:00"}


def every_kind(neighbours: str = "replace", intercept: bool = True) -> dpgram.Schema:
    """A column of every kind, declared and derived."""
    return dpgram.Schema(
        unit="visit",
        neighbours=neighbours,
        intercept=intercept,
        columns=[
            dpgram.Numeric("age", 0, 120, missing="midpoint"),
            dpgram.Numeric("weight", 30, 200, missing=75),
            dpgram.Numeric("cost", -100, 900, missing="midpoint"),
            dpgram.Categorical("region", ["north", "south", "west"], other=True, missing="level"),
            dpgram.Boolean("urban", missing=True),
            dpgram.Date("seen", "2021-01-01", "2022-01-01", missing="midpoint"),
        ],
        derived=[
            dpgram.Product("age_urban", ["age", "urban"]),
            dpgram.Product("region_weight", ["region", "weight"]),
            dpgram.Power("age_squared", "age", 2),
            dpgram.Log1p("log_weight", "weight", missing=4.0),
            dpgram.Interval("in_summer", "seen", "2021-06-01", "2021-09-01"),
            dpgram.DatePart("quarter", "seen", "quarter", levels=True, missing="level"),
            dpgram.DatePart("hour", "seen", "hour"),
        ],
    )


def with_holes(**changes: object) -> dpgram.Schema:
    """``every_kind``, where missing cells drop their rows or have a column of their own, and rows have units and weights."""
    schema = every_kind()
    missing = {"age": "indicator", "weight": "drop-row", "cost": "drop-row", "seen": "indicator", "urban": "drop-row"}
    columns = tuple(replace(c, missing=missing.get(c.name, c.missing)) for c in schema.columns)
    return replace(schema, columns=columns, **changes)


def table(rows: int = 20_000, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    age, weight = rng.uniform(18, 95, rows), rng.normal(75, 14, rows)
    region = rng.choice(["north", "south", "west", "isle", None], rows)
    urban = rng.random(rows) < 0.6
    seen = [datetime.datetime(2021, 1, 1) + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 365 * 24, rows)]
    cost = 40 + 3 * age + 0.5 * weight + 60 * (region == "south") - 30 * urban + rng.normal(0, 60, rows)
    return {"age": age, "weight": weight, "cost": cost, "region": region.tolist(), "urban": urban, "seen": seen}


def long_tailed(rows: int = 20_000, seed: int = 0) -> dict:
    """The table, but that one row of a hundred is long, and costs what no linear model says."""
    rng, cells = np.random.default_rng(seed), table(rows, seed)
    far = np.where(rng.random(rows) < 0.01, np.abs(rng.standard_t(2, rows)), 0.0)
    return {**cells, "weight": cells["weight"] + 40 * far, "cost": cells["cost"] + 200 * (far > 0) + 100 * far}


def tailed_release(neighbours: str = "replace", mus: tuple[float, ...] = (2.0, 2.0, 8.0)) -> dpgram.GramRelease:
    """A release in rounds at these costs, the last of them at several scales."""
    return whitened_release(long_tailed(), every_kind(neighbours), seed=3, mus=mus, scales=first_scales(4))


def release_of(mechanism: str, neighbours: str, *, intercept: bool = True, epsilon: float = 8.0) -> dpgram.GramRelease:
    schema = every_kind(neighbours, intercept)
    options = MECHANISMS[mechanism]
    return dpgram.release(table(), schema, epsilon=epsilon, delta=1e-5, mechanism=mechanism, insecure_seed=7, **options)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def hard_release(seed: int = 0) -> dpgram.GramRelease:
    """Sixty columns and more: long names, names that are markup, many categories, and features that are not identified."""
    rng = np.random.default_rng(seed)
    rows = 40_000
    levels = [f"municipality of {name} and its surroundings, district {k}" for k, name in enumerate("abcdefghijklmnop")]
    names = [f"measurement {k}: concentration of a substance with a long name, in micrograms per litre" for k in range(38)]
    columns = [
        *(dpgram.Numeric(name, 0, 10 ** (k % 5)) for k, name in enumerate(names)),
        dpgram.Categorical("place of residence at the time of the interview", levels),
        dpgram.Categorical(HOSTILE, ["a & b", "<b>bold</b>", '"quoted"'], other=True),
        dpgram.Boolean("ß λ 漢字 🙂"),
        dpgram.Numeric("nearly constant", -1000, 1000),
        dpgram.Numeric("income", 0, 200_000),
    ]
    cells: dict = {name: rng.beta(2, 3, rows) * 10 ** (k % 5) for k, name in enumerate(names)}
    cells["place of residence at the time of the interview"] = rng.choice(levels, rows)
    cells[HOSTILE] = rng.choice(["a & b", "<b>bold</b>", '"quoted"', "else"], rows)
    cells["ß λ 漢字 🙂"] = rng.random(rows) < 0.5
    cells["nearly constant"] = rng.normal(3, 0.5, rows)
    cells["income"] = np.clip(40_000 + 30_000 * cells[names[0]] + 20 * cells[names[3]] + rng.normal(0, 9000, rows), 0, 200_000)
    schema = dpgram.Schema(unit="person interviewed", neighbours="add-remove", columns=columns)
    return dpgram.release(cells, schema, epsilon=8.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=5)


def borrowed_names(seed: int = 0) -> dpgram.GramRelease:
    """Columns named like what every object of a script has, and categories that are numbers."""
    rng, rows = np.random.default_rng(seed), 5000
    cells = {"__proto__": rng.random(rows), "constructor": rng.choice([1, 2, 30, 7], rows), "toString": rng.random(rows)}
    columns = [
        dpgram.Numeric("__proto__", 0, 1),
        dpgram.Categorical("constructor", [1, 2, 30], other=True),
        dpgram.Numeric("toString", -1, 2),
    ]
    return dpgram.release(
        cells, dpgram.Schema(unit="row", columns=columns), epsilon=3.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1
    )
