"""Plans, and the mechanism that "auto" takes: numbers and choices made from public facts alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpgram
from tests.golden.answers import plain
from tests.golden.releases import Setting, cells_of
from tests.golden.tables import ADD_REMOVE, REPLACE, kinds_schema, origin_schema, singular_schema, small_schema

RHO = 3.0
FEW_DERIVED = [  # with all of them assumed moments are nearly singular, and draws follow the last bits of their eigenvectors
    dpgram.DatePart("quarter", "seen", "quarter", levels=True, missing="level"),
    dpgram.Power("age_squared", "age", 2),
    dpgram.Product("age_urban", ["age", "urban"]),
]


def planned(schema: dpgram.Schema, **options: Any) -> dict:
    return dpgram.plan(schema, **{"epsilon": 1.0, "delta": 1e-6, "table_rows": 10_000, **options}).to_dict()


PLANS: dict[str, Callable[[], dict]] = {
    "every mechanism": lambda: planned(small_schema()),
    "few features": lambda: planned(
        small_schema(), target="y", features=["x", "c"], mechanisms=["whitened-noise"], epsilon=0.2
    ),
    "assumed otherwise": lambda: planned(
        singular_schema(),
        mechanisms=["whitened-noise"],
        assumptions=dpgram.Assumptions(spread=0.1, spreads={"q": 0.5}, signal=0.2),
    ),
    "by a sample": lambda: planned(
        small_schema(), target="y", mechanisms=["whitened-noise"], sample=cells_of("small"), sample_is_public=True
    ),
}
SLOW_PLANS: dict[str, Callable[[], dict]] = {  # half a second or more each
    "add-remove": lambda: planned(
        small_schema(neighbours=ADD_REMOVE), epsilon=3.0, mechanisms=["whitened-noise", "noisy-inverse"], rho=RHO
    ),
    "without a constant": lambda: planned(origin_schema(), mechanisms=["whitened-noise", "gaussian-sketch"], table_rows=900),
    "row bounds": lambda: planned(small_schema(), mechanisms=["gaussian-noise", "wishart-noise", "noisy-inverse"], rho=RHO),
    "paper": lambda: planned(small_schema(neighbours=ADD_REMOVE), epsilon=0.5, calibration="paper"),
    "many kinds": lambda: planned(kinds_schema(derived=FEW_DERIVED), target="cost", epsilon=5.0),
    "epsilon for a width": lambda: planned(
        small_schema(), epsilon=None, target_width=0.5, mechanisms=["gaussian-noise", "whitened-noise"]
    ),
    "rows for a width": lambda: planned(
        origin_schema(), table_rows=None, target_width=0.5, solve="rows", mechanisms=["gaussian-noise", "whitened-noise"]
    ),
}

AUTO = {  # table, neighbours, epsilon, table_rows
    "many rows": ("small", ADD_REMOVE, 5.0, 100_000),
    "rows as they are": ("small", REPLACE, 5.0, None),
}
SLOW_AUTO = {
    "some rows": ("small", REPLACE, 1.0, 3000),
    "few rows": ("small", REPLACE, 0.1, 500),
    "without a constant": ("origin", ADD_REMOVE, 5.0, 100_000),
    "few rows, every kind": ("kinds", ADD_REMOVE, 0.1, 500),
    "many rows, every kind": ("kinds", REPLACE, 5.0, 100_000),
    "singular, some rows": ("singular", ADD_REMOVE, 1.0, 3000),
    "singular, many rows": ("singular", REPLACE, 5.0, 100_000),
    "every kind, rows as they are": ("kinds", REPLACE, 5.0, None),
}


def chosen(table: str, neighbours: str, epsilon: float, rows: int | None) -> dict:
    """The mechanism by name, and the seeded release that it then made."""
    made = Setting(table, "auto", neighbours, epsilon=epsilon).release(table_rows=rows)
    return plain({"mechanism": made.mechanism, "gram": made.gram})
