"""A panel with ids of two kinds, weights and missing cells, for tests of what rows count as in every source and engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

import dpgram

COLUMNS = [
    dpgram.Numeric("x", -2, 2),
    dpgram.Numeric("n", 0, 50, missing=7),
    dpgram.Numeric("z", -3, 3, missing="indicator"),
    dpgram.Categorical("c", ["a", "b", "ü"], other=True, missing="level"),
    dpgram.Categorical("k", [0, 1, 2], other=True),
    dpgram.Boolean("b", missing="drop-row"),
    dpgram.Date("when", "2013-01-01", "2014-06-01"),
]
SCHEMAS = {
    ids: dpgram.Schema(
        unit="person",
        row_bound=1.6,
        columns=COLUMNS,
        derived=[dpgram.Product("xn", of=("x", "n"))],
        unit_id=ids,
        rows_per_unit=3,
        weight="w",
        largest_weight=2.0,
    )
    for ids in ("person", "number")
}


def mechanism(name: str) -> dict:
    """What a release of the panel by this mechanism is told."""
    return {"mechanism": name, "epsilon": 5.0, **({"table_rows": 3000} if name == "whitened-noise" else {})}


def make_panel(rows: int = 3000, seed: int = 5) -> pd.DataFrame:
    """About two rows a unit, some units with many; all of a unit's rows are strewn over the table."""
    rng = np.random.default_rng(seed)
    who = np.minimum(rng.integers(0, rows // 2, rows), (rows // 2 * rng.random(rows) ** 4).astype(int))
    names = np.array([f"{'Ünit' if i % 3 else 'ünit'} {i // 2}" for i in range(rows)], dtype=object)
    frame = pd.DataFrame(
        {
            "person": names[who],
            "number": pd.array(who, dtype="Int64"),
            "x": rng.normal(size=rows),
            "n": pd.array(rng.integers(-5, 80, rows), dtype="Int64"),
            "z": rng.normal(size=rows),
            "c": rng.choice(["a", "b", "ü", "other thing"], rows),
            "k": rng.integers(0, 5, rows),
            "b": pd.array(rng.random(rows) < 0.3, dtype="boolean"),
            "when": np.datetime64("2012-10-01", "ms") + rng.integers(0, 6 * 10**10, rows).astype("timedelta64[ms]"),
            "w": np.round(rng.exponential(size=rows), 3),
        }
    )
    for place, name in enumerate(("person", "number", "x", "n", "z", "c", "b", "when", "w")):
        frame.loc[rng.random(rows) < 0.02 * (place % 3 + 1), name] = None
    frame.loc[rng.random(rows) < 0.05, "w"] = 2.0
    frame.loc[rng.random(rows) < 0.01, "w"] = -1.0
    return frame


PANEL = make_panel()


def with_type(table: pa.Table, name: str, type_: pa.DataType) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(type_))
