"""A table with planted mistakes, of which all are named; the same table without them, of which nothing is said."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import dpgram

ROWS = 3000
SCHEMA = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("income", 0, 1e6),
        dpgram.Numeric("height", 50, 250),
        dpgram.Numeric("height_in", 20, 100),
        dpgram.Numeric("wave", 0, 10),
        dpgram.Numeric("age", 0, 120),
        dpgram.Numeric("rate", 0, 100),
        dpgram.Numeric("score", -4, 4, missing="midpoint"),
        dpgram.Date("born", "1900-01-01", "2030-01-01"),
        dpgram.Date("seen", "2000-01-01", "2030-01-01"),
        dpgram.Categorical("city", ["paris", "london", "tokyo"]),
        dpgram.Boolean("smoker"),
    ],
    unit_id="person_id",
    rows_per_unit=3,
    weight="pwgt",
    largest_weight=10.0,
)


def clean(rows: int = ROWS, seed: int = 0) -> dict[str, list]:
    """A table as it should be, written as a CSV file is."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("1940-01-01") + rng.integers(0, 20_000, rows)
    visits = np.datetime64("2010-01-01") + rng.integers(0, 5000, rows)
    columns = {
        "income": [f"{x:.0f}" for x in rng.uniform(900, 200_000, rows)],
        "height": [f"{x:.1f}" for x in rng.normal(170, 10, rows)],
        "height_in": [f"{x:.1f}" for x in rng.normal(67, 4, rows)],
        "wave": [str(x) for x in rng.integers(0, 9, rows)],
        "age": [str(x) for x in rng.integers(0, 100, rows)],
        "rate": [f"{x:.2f}" for x in rng.uniform(0, 100, rows)],
        "score": [f"{x:.3f}" for x in np.clip(rng.normal(size=rows), -4, 4)],
        "born": [str(day) for day in days],
        "seen": [f"{day}T08:00:00" for day in visits],
        "city": rng.choice(["paris", "london", "tokyo"], rows).tolist(),
        "smoker": rng.choice(["yes", "no"], rows).tolist(),
        "person_id": [f"p{k // 2}" for k in range(rows)],
        "pwgt": [f"{x:.3f}" for x in rng.uniform(0.1, 10, rows)],
    }
    columns["score"][:30] = [""] * 30  # a few holes are no mistake
    return columns


def some(share: float, cells: list, change) -> list:
    """The cells, of which this share, evenly spread, is changed."""
    step = round(1 / share)
    return [change(cell) if place % step == 0 else cell for place, cell in enumerate(cells)]


def european(day: str) -> str:
    return f"{day[8:10]}/{day[5:7]}/{day[:4]}"


PLANTED = {  # the code that must be named, its column, and how the mistake is made
    "thousands-separators": ("income", lambda t: some(0.1, t["income"], lambda x: f"{int(x):,}")),
    "day-first": ("born", lambda t: [european(day) for day in t["born"]]),
    "constant": ("wave", lambda t: ["3"] * ROWS),
    "collinear": ("height_in", lambda t: [repr(float(x) / 2.54) for x in t["height"]]),
    "clamped-upper": ("age", lambda t: some(0.05, t["age"], lambda x: str(1900 + int(x)))),
    "misspelt": ("city", lambda t: some(0.02, t["city"], lambda x: x[:-1] + "x" + x[-1])),
    "case": ("city", lambda t: some(0.02, t["city"], str.upper)),
    "white-space": ("city", lambda t: some(0.02, t["city"], lambda x: f"{x} ")),
    "percent-sign": ("rate", lambda t: [f"{x} %" for x in t["rate"]]),
    "missing": ("score", lambda t: some(0.5, t["score"], lambda x: "NA")),
    "epoch-seconds": ("seen", lambda t: [str(np.datetime64(x, "s").astype(int)) for x in t["seen"]]),
    "text": ("smoker", lambda t: some(0.5, t["smoker"], lambda x: "heavily" if x == "yes" else "never")),
    "ids-alike": ("person_id", lambda t: some(0.5, t["person_id"], str.upper)),
    "rows-per-unit": ("person_id", lambda t: [f"p{k // 30}" for k in range(ROWS)]),
    "no-id": ("person_id", lambda t: some(0.1, t["person_id"], lambda x: "")),
    "weight-above": ("pwgt", lambda t: some(0.1, t["pwgt"], lambda x: "12")),
    "weight-negative": ("pwgt", lambda t: some(0.1, t["pwgt"], lambda x: "-1")),
    "weight-missing": ("pwgt", lambda t: some(0.1, t["pwgt"], lambda x: "")),
    "codes": ("income", lambda t: some(0.1, t["income"], lambda x: "-999")),
    "empty-category": ("city", lambda t: ["paris" if x == "tokyo" else x for x in t["city"]]),
}  # fmt: skip
TEN = [
    "thousands-separators", "day-first", "constant", "collinear", "clamped-upper", "misspelt", "missing", "text", "ids-alike",
    "weight-above",
]  # fmt: skip


def written(table: dict[str, list], path) -> str:
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(table)
        rows.writerows(zip(*table.values(), strict=True))
    return str(path)


def named(found: dpgram.Check) -> set[tuple[str | None, str]]:
    return {(each.column, each.code) for each in found.findings}


@pytest.mark.parametrize("seed", range(5))
def test_a_clean_table_has_no_finding(seed, tmp_path):
    found = dpgram.check(written(clean(seed=seed), tmp_path / "t.csv"), SCHEMA)
    assert found.findings == ()
    assert found.suggestions == ()
    assert "Nothing was found" in str(found)


def test_ten_planted_mistakes_are_all_named(tmp_path):
    table = clean()
    for code in TEN:
        column, make = PLANTED[code]
        table[column] = make(table)
    found = dpgram.check(written(table, tmp_path / "t.csv"), SCHEMA)
    assert {(PLANTED[code][0], code) for code in TEN} <= named(found)


@pytest.mark.parametrize("code", PLANTED)
def test_each_mistake_alone_is_named_and_little_else(code, tmp_path):
    """What follows from the mistake itself may be named besides: rows that are dropped for it, a bound that a code lies beyond."""
    column, make = PLANTED[code]
    found = dpgram.check(written(clean() | {column: make(clean())}, tmp_path / "t.csv"), SCHEMA)
    assert (column, code) in named(found)
    follows = {(None, "dropped-rows"), ("income", "clamped-lower"), ("person_id", "rows-per-unit")}
    assert named(found) - {(column, code)} <= follows


def test_wrong_kinds_and_wrong_names_are_named():
    table = clean()
    arrow = {name: table[name] for name in table if name not in ("wave", "smoker")}
    arrow |= {"Wave": table["wave"], "extra": table["wave"], "smoker": np.arange(ROWS).astype("datetime64[D]")}
    arrow["born"] = np.arange(ROWS) + 20_200_101
    found = dpgram.check(arrow, SCHEMA)
    assert {("wave", "absent"), ("smoker", "wrong-kind"), ("born", "wrong-kind")} <= named(found)
    assert found.absent == ("wave",)
    assert set(found.unused) == {"Wave", "extra"}
    (absent,) = [each for each in found.findings if each.code == "absent"]
    assert "'Wave'" in absent.do
    lines = {each.column: each.line for each in found.suggestions}
    assert lines["smoker"] == 'kind = "date"'
