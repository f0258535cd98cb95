"""Rows and columns together: collinear and constant columns, rows that are dropped or clipped, and tables of hardly any rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram import Boolean, Categorical, Date, Numeric

RNG = np.random.default_rng(1)
ROWS = 2000
X, Y, Z = RNG.uniform(0, 10, (3, ROWS))


def check(table, columns, **more):
    return dpgram.check(table, dpgram.Schema(unit="person", columns=columns, **more))


def words(found, code):
    return [each.words for each in found.findings if each.code == code]


def codes(found):
    return [each.code for each in found.findings]


COLLINEAR = [
    ({"a": X, "b": X}, [Numeric("a", 0, 10), Numeric("b", 0, 10)], "b", "a"),
    ({"a": X, "b": 32 + 1.8 * X}, [Numeric("a", -50, 60), Numeric("b", -100, 150)], "b", "a"),
    ({"a": X, "b": X}, [Numeric("a", 0, 10), Numeric("b", -1000, 3000)], "b", "a"),
    ({"a": X, "b": Y, "c": Z, "d": X + Y + Z}, [*(Numeric(n, 0, 10) for n in "abc"), Numeric("d", 0, 30)], "d", "a, b, c"),
    ({"a": X, "b": Y, "c": Z, "d": X - Z}, [*(Numeric(n, 0, 10) for n in "abc"), Numeric("d", -10, 10)], "d", "a, c"),
    ({"a": X > 5, "b": X <= 5}, [Boolean("a"), Boolean("b")], "b", "a"),
    (
        {"c": np.where(X < 3, "p", np.where(X < 6, "q", "r")), "m": (X >= 3).astype(float)},
        [Categorical("c", ["p", "q", "r"]), Numeric("m", 0, 1)], "m", "c[q], c[r]",
    ),
    (
        {"day": np.datetime64("2020-01-01") + (X * 30).astype(int), "n": (X * 30).astype(int)},
        [Date("day", "2019-01-01", "2022-01-01"), Numeric("n", 0, 400)], "n", "day",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("table", "columns", "last", "others"), COLLINEAR)
def test_collinear_columns_are_named(table, columns, last, others):
    (finding,) = check(table, columns).findings
    assert (finding.column, finding.code) == (last, "collinear")
    assert finding.words == f"this column follows exactly from {others}, so a regression cannot use them together"


def test_a_copy_of_a_categorical_column_is_one_finding():
    city = np.where(X < 3, "p", np.where(X < 6, "q", "r"))
    columns = [Categorical("a", ["p", "q", "r"]), Categorical("b", ["r", "q", "p"])]
    (finding,) = check({"a": city, "b": city}, columns).findings
    assert (finding.column, finding.code) == ("b", "collinear")
    assert finding.words.startswith("b[q], b[p] follow exactly from a[q], a[r], so")


def test_collinear_columns_are_named_where_cells_are_missing():
    """Dropped rows are left out, so that what replaces a missing cell does not hide it."""
    holes = np.where(np.arange(ROWS) % 50 == 0, np.nan, X)
    (finding,) = check({"a": holes, "b": 2 * X}, [Numeric("a", 0, 10), Numeric("b", 0, 20)]).findings
    assert finding.code == "collinear"


def test_a_column_without_a_single_readable_cell_hides_no_collinearity():
    found = check(
        {"a": X, "b": 2 * X, "day": ["31/12/2020"] * ROWS},
        [Numeric("a", 0, 10), Numeric("b", 0, 20), Date("day", "2020-01-01", "2021-01-01")],
    )
    assert codes(found) == ["day-first", "dropped-rows", "collinear"]


@pytest.mark.parametrize(
    "more", [{"unit_id": "id", "rows_per_unit": ROWS}, {"weight": "w", "largest_weight": 1.0}], ids=["ids", "weights"]
)
def test_rows_that_do_not_count_hide_no_collinearity(more):
    counting = np.arange(ROWS) % 5 > 0
    table = {"a": X, "b": np.where(counting, 2 * X, Y), "id": np.where(counting, "p", ""), "w": counting.astype(float)}
    assert "collinear" in codes(check(table, [Numeric("a", 0, 10), Numeric("b", 0, 20)], **more))


def test_without_an_intercept_a_shift_is_not_collinear():
    columns = [Numeric("a", 0, 10), Numeric("b", 0, 20)]
    assert codes(check({"a": X, "b": X + 5}, columns, intercept=False)) == []
    assert codes(check({"a": X, "b": 2 * X}, columns, intercept=False)) == ["collinear"]


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 1e-4])
def test_columns_that_are_nearly_collinear_are_not_named(noise):
    table = {"a": X, "b": 2 * X + noise * (Y - 5)}
    assert codes(check(table, [Numeric("a", 0, 10), Numeric("b", -5, 25)])) == []


@pytest.mark.parametrize("wide", [1e2, 1e4, 1e6, 1e9, 1e12])
def test_bounds_that_are_far_too_wide_make_no_column_collinear_or_constant(wide):
    """The mechanism whitened-noise finds the scale by itself, so such columns are fine."""
    columns = [Numeric("a", -wide, wide), Numeric("b", -wide, wide), Numeric("c", 0, 10)]
    assert codes(check({"a": X, "b": Y, "c": Z}, columns)) == []


def test_interactions_of_numbers_are_not_collinear_but_powers_of_truth_values_are():
    columns = [Numeric("a", 0, 10), Numeric("t", 0, 1)]
    squared = [dpgram.Power("tt", of="t"), dpgram.Product("at", of=("a", "t"))]
    (finding,) = check({"a": X, "t": (Y > 5).astype(float)}, columns, derived=squared).findings
    assert (finding.column, finding.code) == ("tt", "collinear")
    assert codes(check({"a": X, "t": Y / 10}, columns, derived=squared)) == []


def test_constant_columns():
    same = {"n": [3.0] * ROWS, "c": ["p"] * ROWS, "b": [False] * ROWS, "d": ["2020-01-01"] * ROWS, "x": X}
    columns = [
        Numeric("n", 0, 10), Categorical("c", ["p", "q"]), Boolean("b"), Date("d", "2019-01-01", "2021-01-01"), Numeric("x", 0, 10),
    ]  # fmt: skip
    found = check(same, columns)
    assert [(each.column, each.code) for each in found.findings] == [(name, "constant") for name in "ncbd"]
    # Where a cell is missing and its row dropped, what is left is constant; where it is filled with another value, it is not.
    holes = {"n": [3.0, None] * (ROWS // 2), "x": X}
    assert "constant" in codes(check(holes, [Numeric("n", 0, 10), Numeric("x", 0, 10)]))
    assert "constant" not in codes(check(holes, [Numeric("n", 0, 10, missing=7), Numeric("x", 0, 10)]))


def test_clipped_rows():
    columns = [Numeric("a", 0, 10), Numeric("b", 0, 10)]
    long = (1 + ((X - 5) / 5) ** 2 + ((Y - 5) / 5) ** 2) > 1.2**2
    found = check({"a": X, "b": Y}, columns, row_bound=1.2)
    assert found.whole["rows_clipped"] == pytest.approx(long.mean(), abs=2 / ROWS)
    assert codes(found) == ["clipped-rows"]
    assert check({"a": X, "b": Y}, columns).whole["rows_clipped"] is None  # no row can be


def test_dropped_rows_and_the_column_that_drops_most():
    a = np.where(np.arange(ROWS) % 10 == 0, np.nan, X)
    b = np.where(np.arange(ROWS) % 4 == 0, np.nan, Y)
    found = check({"a": a, "b": b}, [Numeric("a", 0, 10), Numeric("b", 0, 10)])
    assert found.whole["rows_dropped"] == 0.3  # 1/10 + 1/4 - 1/20
    assert found.whole["rows_dropped_most_for"] == "b"
    assert found.whole["rows_counting"] == 0.7
    assert codes(found) == ["missing", "missing", "dropped-rows"]
    kept = [Numeric("a", 0, 10, missing="indicator"), Numeric("b", 0, 10, missing="indicator")]
    assert codes(check({"a": a, "b": b}, kept)) == []


@pytest.mark.parametrize("missing", ["drop-row", "indicator", "midpoint", 3.0])
def test_missing_cells_under_each_rule(missing):
    found = check({"a": np.where(X < 3, np.nan, X), "b": Y}, [Numeric("a", 0, 10, missing=missing), Numeric("b", 0, 10)])
    told = words(found, "missing")
    ends = {
        "drop-row": "so their rows do not count",
        "midpoint": "and count as the middle of the bounds",
        3.0: "and count as the declared value",
    }
    assert [each.partition(", ")[2] for each in told] == ([ends[missing]] if missing in ends else [])


@pytest.mark.parametrize("column", [Numeric("a", 0, 10), Date("a", "2000-01-01", "2030-01-01")], ids=lambda column: column.kind)
@pytest.mark.parametrize(("missing", "advice"), [(None, "Keep drop-row"), ("midpoint", 'Declare "drop-row" instead')])
def test_a_column_with_many_holes_may_be_a_target(column, missing, advice):
    """One with an indicator cannot."""
    cells = ["", "", "2010-05-05" if column.kind == "date" else "5"] * 30
    found = check({"a": cells, "b": Y[:90]}, [replace(column, missing=missing), Numeric("b", 0, 10)])
    (finding,) = [each for each in found.findings if each.code == "missing"]
    assert finding.do.endswith(f'declare missing = "indicator". {advice} if regressions should explain this column.')
    (line,) = [each for each in found.suggestions if each.line == 'missing = "indicator"']
    assert line.why.endswith("Use drop-row if regressions should explain this column")


def test_a_category_with_many_holes_can_be_a_target_with_a_level_for_them():
    found = check({"a": ["", "p", "q"] * 30}, [Categorical("a", ["p", "q"])])
    (finding,) = [each for each in found.findings if each.code == "missing"]
    assert finding.do == 'Remove the column, or declare missing = "level".'


KINDS = {
    "numeric": (Numeric("v", 0, 10), 5.0),
    "date": (Date("v", "2020-01-01", "2021-01-01"), "2020-05-05"),
    "categorical": (Categorical("v", ["p", "q"]), "p"),
    "codes": (Categorical("v", [1, 2]), 1),
    "boolean": (Boolean("v"), True),
}


@pytest.mark.parametrize(("kind", "intercept", "rows"), itertools.product(KINDS, [True, False], [0, 1, 2]))
def test_tables_of_hardly_any_rows(kind, intercept, rows):
    """One column, with and without an intercept."""
    column, cell = KINDS[kind]
    found = check({"v": [cell] * rows}, [column], intercept=intercept)
    assert found.table_rows == rows
    assert ("no-rows" in codes(found)) == (rows == 0)
    assert ("constant" in codes(found)) == (rows == 2)
    assert "collinear" not in codes(found)
    assert found.columns[0].missing == found.columns[0].unreadable == 0
    assert str(found)
    assert found.suggested_schema


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", [None, ""])
def test_a_column_of_missing_cells(kind, cell):
    column, _ = KINDS[kind]
    found = check({"v": [cell] * 50}, [column])
    assert found.columns[0].missing == 1
    assert set(codes(found)) <= {"missing", "dropped-rows"}
    (finding,) = [each for each in found.findings if each.code == "missing"]
    assert finding.do == "Correct the source, or remove the column."  # no rule helps
    assert not any(each.line.startswith("missing") for each in found.suggestions)


def test_nan_and_infinity():
    found = check({"v": np.array([np.nan, np.inf, -np.inf, 1.0] * 10)}, [Numeric("v", 0, 10)])
    (shares,) = found.columns
    assert (shares.missing, shares.unreadable, shares.below, shares.above) == (0.25, 0.5, 0, 0)
    assert "not-finite" in codes(found)


def test_clamped_shares():
    values = np.array([-1.0] * 3 + [11.0] * 5 + [0.0, 10.0] * 46)
    found = check({"v": values, "x": RNG.normal(size=100)}, [Numeric("v", 0, 10), Numeric("x", -5, 5)])
    assert (found.columns[0].below, found.columns[0].above) == (0.03, 0.05)
    assert codes(found) == ["clamped-lower", "clamped-upper"]
    days = np.array(["1999-12-31"] * 3 + ["2000-06-01"] * 40 + ["2000-07-01"] * 57, dtype="datetime64[D]")
    found = check({"v": days}, [Date("v", "2000-01-01", "2001-01-01")])
    assert (found.columns[0].below, found.columns[0].above) == (0.03, 0)


def test_undeclared_values_that_are_meant_to_be_other_are_no_finding():
    table = {"v": ["p", "q", "rome", "tokyo"] * 25}
    assert codes(check(table, [Categorical("v", ["p", "q"])])) == ["undeclared"]
    found = check(table, [Categorical("v", ["p", "q"], other=True)])
    assert (codes(found), found.columns[0].undeclared) == ([], 0.5)
    assert codes(check({"v": ["p", "q", "P", "Q"] * 25}, [Categorical("v", ["p", "q"], other=True)])) == ["case"]


def test_categories_that_no_row_has_are_named_together():
    column = Categorical("v", [f"level {k}" for k in range(20)])
    found = check({"v": ["level 0", "level 1", "level 2"] * 30}, [column])
    (told,) = words(found, "empty-category")
    assert told.startswith("no row has the declared categories 'level 3', 'level 4', ")
    assert told.endswith("'level 10' and 9 more")


def test_many_different_texts_are_compared_with_categories_only_so_long(monkeypatch):
    monkeypatch.setattr("dpgram.checking.tally.MOST_COMPARED", 2)
    found = check(
        {"v": ["pariss", "londonn", "tokyoo", "paris", "london", "tokyo"] * 9}, [Categorical("v", ["paris", "london", "tokyo"])]
    )
    assert {each.code: each.share for each in found.findings} == {"misspelt": 18 / 54, "undeclared": 9 / 54}


def test_fewer_rows_than_columns_are_told_instead_of_collinearities():
    table = {f"x{k}": RNG.normal(size=5) for k in range(6)}
    assert codes(check(table, [Numeric(name, -9, 9) for name in table])) == ["few-rows"]


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_what_is_found_does_not_depend_on_the_batches(batch):
    table = pa.table(
        {"a": X, "b": 2 * X, "c": np.where(X < 1, "P", np.where(X < 5, "p", "q")), "s": ["1,500", "7"] * (ROWS // 2)}
    )
    columns = [Numeric("a", 0, 9), Numeric("b", 0, 20), Categorical("c", ["p", "q"]), Numeric("s", 0, 10, missing="midpoint")]
    parts = pa.Table.from_batches(table.to_batches(max_chunksize=batch))
    assert check(parts, columns).to_dict() == check(table, columns).to_dict()
