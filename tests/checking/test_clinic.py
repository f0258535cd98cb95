"""Another table, of a clinic, with other mistakes than the first: each is named in words that a person understands."""

from __future__ import annotations

import datetime as dt
import tomllib

import numpy as np
import pandas as pd
import pytest

import dpgram

ROWS = 2000
SCHEMA = dpgram.Schema(
    unit="patient",
    columns=[
        dpgram.Numeric("stay", 0, 100),
        dpgram.Date("admitted", "2020-01-01", "2023-01-01"),
        dpgram.Date("born", "1900-01-01", "2022-01-01"),
        dpgram.Numeric("cost", 0, 200_000),
        dpgram.Numeric("protein", 0, 500),
        dpgram.Numeric("pain", 0, 10),
        dpgram.Categorical("ward", ["Cardiology", "Oncology", "Surgery"]),
        dpgram.Numeric("fahrenheit", 80, 120),
        dpgram.Numeric("celsius", 25, 50),
        dpgram.Boolean("smoker"),
        dpgram.Numeric("income", 0, 500_000),
    ],
    unit_id="patient",
    rows_per_unit=10,
)


def clean() -> dict[str, list[str]]:
    rng = np.random.default_rng(20)
    days = [dt.date(2021, 1, 4) + dt.timedelta(days=int(k)) for k in rng.integers(0, 600, ROWS)]
    months = zip(rng.integers(1, 13, ROWS), rng.integers(1930, 2000, ROWS), strict=True)
    return {
        "stay": [f"{x:.2f}" for x in rng.gamma(2, 5, ROWS)],
        "admitted": [str(day) for day in days],
        "born": [f"{year}-{month:02d}-01" for month, year in months],
        "cost": [f"{x:.0f}" for x in rng.gamma(3, 4000, ROWS)],
        "protein": [f"{x:.1f}" for x in rng.gamma(2, 9, ROWS)],
        "pain": [str(x) for x in rng.integers(0, 11, ROWS)],
        "ward": rng.choice(["Cardiology", "Oncology", "Surgery"], ROWS).tolist(),
        "fahrenheit": [f"{x:.1f}" for x in rng.normal(98.6, 1, ROWS)],
        "celsius": [f"{x:.1f}" for x in rng.normal(37, 0.5, ROWS)],
        "smoker": rng.choice(["yes", "no"], ROWS).tolist(),
        "income": [str(x) for x in rng.integers(0, 250_000, ROWS)],
        "patient": [f"K{k:05d}" for k in rng.integers(0, 1500, ROWS)],
    }


def each(change):
    return lambda column: lambda table: [change(cell) for cell in table[column]]


def every(step, change):
    return lambda column: lambda table: [cell if k % step else change(cell) for k, cell in enumerate(table[column])]


PLANTED = {  # by column: how the mistake is made, and what is said of it and what to do
    "stay": (each(lambda x: f"{int(float(x))} d {int(float(x) % 1 * 24)} h"), "two units", "one unit"),
    "admitted": (each(lambda day: dt.date.fromisoformat(day).strftime("%a %d-%b-%y")), "name of the month", "2020-12-31"),
    "born": (each(lambda day: f"{day[5:7]}/{day[:4]}"), "months", "Write a whole date"),
    "cost": (each(lambda x: f"CHF {int(x):,}.-".replace(",", "'")), "dash for the cents", "no minus sign"),
    "protein": (every(5, lambda x: "<0.6"), "limits, such as 10-19 or <5", "Choose one number"),
    "pain": (each(lambda x: f"{x}/10"), "two numbers in one cell", "Write two columns"),
    "ward": (every(10, lambda x: f"{x}\u00a0"), "white space", "Remove the white space"),
    "celsius": (lambda _: lambda table: [repr((float(x) - 32) / 1.8) for x in table["fahrenheit"]], "follows exactly", "Remove one"),
    "smoker": (each({"yes": "J", "no": "N"}.get), "not known here", "yes and no"),
    "income": (each(lambda x: f"{int(x):,}".replace(",", ".")), "point may separate thousands", "If it does, remove it"),
    "patient": (every(12, lambda x: " "), "a word for a missing id, such as NA or a blank", "Leave such ids empty"),
}  # fmt: skip


def made(column, table):
    return PLANTED[column][0](column)(table)


def written(table, folder) -> str:
    pd.DataFrame(table).to_csv(folder / "t.csv", index=False)
    return str(folder / "t.csv")


def test_the_clean_table_has_no_finding(tmp_path):
    assert dpgram.check(written(clean(), tmp_path), SCHEMA).findings == ()


def test_all_mistakes_of_one_table_are_named_in_plain_words(tmp_path):
    found = dpgram.check(
        written({column: made(column, clean()) if column in PLANTED else cells for column, cells in clean().items()}, tmp_path),
        SCHEMA,
    )
    for column, (_, words, do) in PLANTED.items():
        assert any(words in one.words and do in one.do for one in found.findings if one.column == column), column
    assert not any(line.line.startswith("kind") for line in found.suggestions)
    read = dpgram.Schema.from_dict(tomllib.loads(found.suggested_schema))
    assert read.columns == SCHEMA.columns  # nothing of the rows has come into it


@pytest.mark.parametrize("column", PLANTED)
def test_each_mistake_alone_is_all_that_is_named(column, tmp_path):
    """But for the rows that are dropped for it."""
    found = dpgram.check(written(clean() | {column: made(column, clean())}, tmp_path), SCHEMA)
    told = [one for one in found.findings if one.code not in ("dropped-rows", "rows-per-unit")]
    assert [(one.column, PLANTED[column][1] in one.words) for one in told] == [(column, True)]
