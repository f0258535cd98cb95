"""A third table, of flats: ids and weights that look right one by one and are not, and cells as spreadsheets write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpgram

ROWS = 2000
SCHEMA = dpgram.Schema(
    unit="household",
    columns=[
        dpgram.Numeric("rent", 0, 5000),
        dpgram.Numeric("rooms", 0, 20),
        dpgram.Numeric("area", 0, 500),
        dpgram.Numeric("outside", -40, 50),
        *(dpgram.Numeric(f"share_{name}", 0, 100) for name in "abc"),
        dpgram.Date("moved", "1950-01-01", "2025-01-01"),
        dpgram.Boolean("owner"),
        dpgram.Categorical("heating", ["gas", "oil", "wood", "district"]),
        dpgram.Categorical("fuel", ["fossil", "other"]),
        dpgram.Categorical("floor", [0, 1, 2, 3, 4, 5]),
    ],
    unit_id="flat",
    rows_per_unit=2,
    weight="w",
    largest_weight=5.0,
)


def clean() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    days = zip(rng.integers(1980, 2024, ROWS), rng.integers(1, 13, ROWS), rng.integers(1, 29, ROWS), strict=True)
    table = {
        "flat": [f"H-{k // 2:04d}" for k in range(ROWS)],
        "w": [f"{x:.2f}" for x in rng.uniform(0.5, 5, ROWS)],
        "rent": [f"{x:.0f}" for x in rng.uniform(200, 3000, ROWS)],
        "rooms": [str(x) for x in rng.integers(1, 9, ROWS)],
        "area": [f"{x:.1f}" for x in rng.uniform(15, 200, ROWS)],
        "outside": [f"{x:.1f}" for x in rng.normal(5, 8, ROWS)],
        **{f"share_{name}": [str(x) for x in rng.integers(0, 50, ROWS)] for name in "abc"},
        "moved": [f"{year}-{month:02d}-{day:02d}" for year, month, day in days],
        "owner": rng.choice(["yes", "no"], ROWS),
        "heating": rng.choice(["gas", "oil", "wood", "district"], ROWS),
        "fuel": rng.choice(["fossil", "other"], ROWS),
        "floor": [str(x) for x in rng.integers(0, 6, ROWS)],
    }
    return pd.DataFrame(table)


def some(change, every=33):
    return lambda cells: [change(cell) if place % every == 0 else cell for place, cell in enumerate(cells)]


PLANTED = {  # by column: the code that must be named, and how the mistake is made from the cells
    "flat": ("crowded-ids", some(lambda _: "0", 5)),
    "w": ("weight-small", lambda cells: [f"{float(cell) / 100:.4f}" for cell in cells]),
    "rent": ("thousands-separators", lambda cells: [f"{int(cell):,}".replace(",", "\u2009") for cell in cells]),
    "rooms": ("units", some(lambda cell: f"{cell} Zimmer")),
    "area": ("formula-errors", some(lambda _: "#REF!")),
    "outside": ("negative", lambda cells: [cell.replace("-", "\u2212") for cell in cells]),
    "moved": ("impossible", some(lambda _: "0000-00-00")),
    "owner": ("numbers", lambda cells: ["1" if cell == "yes" else "2" for cell in cells]),
    "heating": ("misspelt", some(lambda cell: f"{cell}\u200b")),
    "floor": ("text", some(lambda _: "G")),
}


def named(table, folder):
    table.to_csv(folder / "t.csv", index=False)
    return {(each.column, each.code) for each in dpgram.check(folder / "t.csv", SCHEMA).findings}


def test_the_clean_table_has_no_finding(tmp_path):
    assert named(clean(), tmp_path) == set()


def test_ten_mistakes_and_two_of_several_columns_are_all_named(tmp_path):
    table = clean()
    for column, (_, make) in PLANTED.items():
        table[column] = make(table[column])
    table["share_c"] = [str(100 - int(a) - int(b)) for a, b in zip(table["share_a"], table["share_b"], strict=True)]
    table["fuel"] = np.where(clean()["heating"].isin(["gas", "oil"]), "fossil", "other")
    found = named(table, tmp_path)
    assert {(column, code) for column, (code, _) in PLANTED.items()} <= found
    assert {("share_c", "collinear"), ("fuel", "collinear")} <= found


@pytest.mark.parametrize("column", PLANTED)
def test_each_mistake_alone_is_all_that_is_named(column, tmp_path):
    """But for the rows that are dropped for it."""
    code, make = PLANTED[column]
    table = clean()
    table[column] = make(table[column])
    assert named(table, tmp_path) - {(None, "dropped-rows")} == {(column, code)}
