"""Made-up tables for the audit of the whole house: at the edges of what a table can be, and neighbours of each other."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import Boolean, Categorical, Date, Numeric
from dpgram.terms.derived import Product
from dpgram.terms.schema import Schema

Cells = dict[str, list]

DAY = datetime.date(2020, 6, 1)
COLUMNS = (
    Numeric("x", -1, 1),
    Numeric("y", -2, 6, missing="indicator"),
    Numeric("z", 0, 1e6, missing="midpoint"),  # bounds far too wide: looks find its scale
    Categorical("c", ("a", "b", "rare"), missing="reference"),
    Boolean("b"),
    Date("d", "2020-01-01", "2021-01-01", missing="midpoint"),
)
DERIVED = (Product("xb", ("x", "b")),)
PLAIN = Schema(unit="person", columns=COLUMNS, derived=DERIVED)
OF_UNITS = replace(PLAIN, unit_id="id", rows_per_unit=2)
WEIGHTED = replace(OF_UNITS, weight="w", largest_weight=3.0)
SCHEMAS = {"rows": PLAIN, "units": OF_UNITS, "units and weights": WEIGHTED}
RARE = 2  # place of the level that few rows have


def usual(rows: int, seed: int = 0) -> Cells:
    """Rows as they come, without the rare level."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.2, 0.4, rows)
    return {
        "x": x.tolist(),
        "y": [None if rng.random() < 0.1 else float(value) for value in 2 + 2 * x + rng.normal(size=rows)],
        "z": rng.exponential(100.0, rows).tolist(),
        "c": rng.choice(["a", "b"], rows).tolist(),
        "b": (rng.random(rows) < 0.4).tolist(),
        "d": [DAY + datetime.timedelta(int(days)) for days in rng.integers(0, 100, rows)],
        "id": [f"person {k}" for k in range(rows)],
        "w": rng.uniform(0, 3, rows).tolist(),
    }


ROWS: dict[str, tuple] = {  # what a row may be, in the order of the columns
    "at the bound": (1.0, 6.0, 1e6, "rare", True, datetime.date(2021, 1, 1)),
    "at the other bound": (-1.0, -2.0, 0.0, "b", True, datetime.date(2020, 1, 1)),
    "of zeros": (0.0, 2.0, 5e5, "a", False, datetime.date(2020, 7, 2)),
    "of missing cells": (None,) * 6,
    "out of bounds": (1e300, -1e300, float("inf"), "nowhere", None, datetime.date(1900, 1, 1)),
    "no numbers": (float("nan"), float("nan"), float("nan"), "", False, DAY),
}


def all_alike(row: str, rows: int) -> Cells:
    cells = dict(zip(("x", "y", "z", "c", "b", "d"), ROWS[row], strict=True))
    return {
        **{name: [cell] * rows for name, cell in cells.items()},
        "id": [f"person {k}" for k in range(rows)],
        "w": [3.0] * rows,
    }


def with_row(table: Cells, row: str, place: int | None, *, many: int = 1) -> Cells:
    """The table with one row replaced, or ``many`` more of one unit at its end."""
    cells = dict(zip(("x", "y", "z", "c", "b", "d"), ROWS[row], strict=True))
    others = {"id": "somebody else", "w": 3.0}
    made = {}
    for name, column in table.items():
        cell = cells.get(name, others.get(name))
        made[name] = [*column, *[cell] * many] if place is None else [*column[:place], cell, *column[place + 1 :]]
    return made


def without(table: Cells, place: int) -> Cells:
    return {name: [*column[:place], *column[place + 1 :]] for name, column in table.items()}


def edges(rows: int) -> Mapping[str, Cells]:
    """Tables with as many rows that have nothing else in common."""
    made = {"usual": usual(rows), "other numbers": usual(rows, seed=1)}
    made |= {f"all rows {row}": all_alike(row, rows) for row in ROWS}
    made["with the rare level"] = {**usual(rows), "c": ["rare", *usual(rows)["c"][1:]]}
    return made


@dataclass(frozen=True)
class Group:
    """Tables of which nothing that is public is different. ``of`` makes them when they are needed."""

    name: str
    schema: Schema
    of: Callable[[], Mapping[str, Cells]]


def groups(kind: str, neighbours: Neighbours) -> list[Group]:
    """Where rows are replaced, tables of the same length; where they are added, tables of any length."""
    schema = replace(SCHEMAS[kind], neighbours=neighbours)
    if neighbours is Neighbours.REPLACE:
        return [Group(f"{rows} rows", schema, lambda rows=rows: edges(rows)) for rows in (1, 60, 3000)]  # type: ignore[misc]
    lengths = (0, 1, 2, 12, 60, 103, 104, 3000)
    return [
        Group("any number of rows", schema, lambda: {f"{rows} rows": usual(rows, seed=rows) for rows in lengths}),
        Group("any rows", schema, lambda: {**edges(60), "none": usual(0)}),
    ]


def pairs(kind: str, neighbours: Neighbours) -> Mapping[str, tuple[Cells, Cells, Schema]]:
    """Neighbours: tables that differ in one row, or in one unit with all its rows."""
    schema = replace(SCHEMAS[kind], neighbours=neighbours)
    made: dict[str, tuple[Cells, Cells, Schema]] = {}
    for rows in (2, 400):
        base = usual(rows)
        for row in ROWS:
            name = f"{rows} rows, one {row}"
            if neighbours is Neighbours.REPLACE:
                one = with_row(base, row, 0)
                made[name] = (base, {**one, "id": base["id"]} if kind == "rows" else one, schema)
            else:
                made[name] = (base, with_row(base, row, None, many=1 if kind == "rows" else 50), schema)
        if neighbours is Neighbours.REPLACE:
            ends = (with_row(base, row, 0) for row in ("at the bound", "at the other bound"))
            one, other = ({**end, "id": [f"new {k}", *base["id"][1:]]} for k, end in enumerate(ends))
            made[f"{rows} rows, from one bound to the other"] = (one, other, schema)
            if kind != "rows":
                many, fewer = with_row(base, "at the bound", None, many=50), with_row(base, "of zeros", None)
                made[f"{rows} rows, a unit of many for one of few"] = (many, {**fewer, "id": [*base["id"], "another"]}, schema)
        else:
            made[f"{rows} rows, one less"] = (base, without(base, 1), schema)
    return made


def as_table(cells: Cells) -> pa.Table:
    types = {
        "x": pa.float64(), "y": pa.float64(), "z": pa.float64(), "c": pa.string(), "b": pa.bool_(), "d": pa.date32(), "id": pa.string(),
        "w": pa.float64(),
    }  # fmt: skip
    return pa.table({name: pa.array(column, types[name]) for name, column in cells.items()})


def as_csv(cells: Cells, folder: Path) -> Path:
    path, names = folder / "table.csv", list(cells)
    lines = [
        ",".join(names),
        *(",".join("" if cell is None else str(cell) for cell in row) for row in zip(*cells.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def as_parquet(cells: Cells, folder: Path) -> Path:
    import pyarrow.parquet as pq

    path = folder / "table.parquet"
    pq.write_table(as_table(cells), path, row_group_size=500)
    return path


SOURCES: dict[str, Callable[[Cells, Path], object]] = {
    "a table in memory": lambda cells, folder: as_table(cells),
    "a CSV file": as_csv,
    "a Parquet file": as_parquet,
}
