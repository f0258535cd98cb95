"""Numbers that can be read, but may mean something else: codes for a missing value, and points that separate thousands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpgram

ROWS = 2000
RNG = np.random.default_rng(5)


def told(cells, lower, upper, name="x"):
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, lower, upper)])
    return {each.code: each.share for each in dpgram.check({name: cells}, schema).findings if each.column == name}


def mixed(values, code, share):
    return np.where(np.arange(ROWS) % round(1 / share) == 0, code, values)


UNIFORM = RNG.uniform(0, 80, ROWS).round(1)
HOURS = np.minimum(RNG.gamma(16, 2.6, ROWS).round(), 99)  # some work 60 hours and more, and a few 99
COLD = RNG.normal(8, 6, ROWS).round()  # some days are at -9


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
@pytest.mark.parametrize(("code", "upper"), [(-999.0, 80), (-9.0, 80), (99.0, 90), (9999.0, 80), (-88.0, 80)])
def test_codes_for_a_missing_value(code, upper, share):
    assert told(mixed(UNIFORM, code, share), 0, upper)["codes"] == share


@pytest.mark.parametrize("code", [-999.0, 9999.0, -888.0])
def test_a_rare_code_far_from_all_other_numbers(code):
    assert told(mixed(UNIFORM, code, 1 / 1000), 0, 80)["codes"] == 2 / ROWS
    assert told([code, 5.0, 7.0], 0, 80)["codes"] == 1 / 3
    assert told([code] * 20, 0, 80)["codes"] == 1


def test_several_codes_of_one_column():
    cells = mixed(mixed(UNIFORM, -99.0, 1 / 10), -9.0, 1 / 100)
    assert told(cells, 0, 80)["codes"] == 0.1 + 0.01 - 0.01  # of the rows at -9, all were at -99


def test_a_number_that_only_looks_like_a_code():
    """It has neighbours beyond the same bound, and more of them."""
    assert 0 < (HOURS == 99).sum() + (np.append(HOURS, 99) == 99).sum() < 10
    assert "codes" not in told(np.append(HOURS, 99), 0, 60)
    assert (COLD == -9).sum() > 2
    assert "codes" not in told(COLD, 0, 40)
    assert "codes" not in told(np.append(UNIFORM, -9.0), 0, 80)
    assert "codes" not in told([*UNIFORM, 99.0], 0, 80)


def test_codes_within_the_bounds_and_other_numbers_outside_are_none():
    assert "codes" not in told(mixed(UNIFORM, -999.0, 0.1), -1000, 1000)
    assert "codes" not in told(mixed(UNIFORM, -998.0, 0.1), 0, 80)
    assert "codes" not in told([999.0, 5.0, 7.0], 0, 999)


def dotted(values):
    return [f"{value:,}".replace(",", ".") for value in values]


AMOUNTS = RNG.integers(1000, 30_000, ROWS)


def written(cells, folder):
    pd.DataFrame({"x": cells}).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


@pytest.mark.parametrize(
    ("cells", "share"),
    [
        (dotted(AMOUNTS), 1),
        ([one if k % 2 else str(value) for k, (one, value) in enumerate(zip(dotted(AMOUNTS), AMOUNTS, strict=True))], 0.5),
        (["", *dotted(-AMOUNTS[:1999])], 1999 / ROWS),
        (dotted(AMOUNTS // 15), np.mean(AMOUNTS // 15 >= 1000)),  # those below a thousand have no point
    ],
    ids=["all", "half", "negative", "small ones too"],
)
def test_points_that_may_separate_thousands(cells, share, tmp_path):
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", -100_000, 100_000)])
    found = dpgram.check(written(cells, tmp_path), schema)
    (finding,) = [each for each in found.findings if each.code == "thousands-points"]
    assert finding.share == share
    assert "may separate thousands" in finding.words
    assert "If it is one, leave it" in finding.do
    assert (found.columns[0].unreadable, found.columns[0].missing) == (0, cells.count("") / ROWS)
    assert not any(each.line.startswith("kind") for each in found.suggestions)


ORDINARY = {
    "three decimals within narrow bounds": ([f"{x:.3f}" for x in RNG.uniform(1, 90, ROWS)], 100),
    "three decimals, some below one": ([f"{x:.3f}" for x in RNG.normal(0, 40, ROWS)], 1e6),
    "two decimals": ([f"{x:.2f}" for x in RNG.uniform(1, 90, ROWS)], 1e6),
    "rounded to three decimals": ([str(x) for x in RNG.uniform(1, 90, ROWS).round(3)], 1e6),
    "as many as there are": ([repr(x) for x in RNG.uniform(1, 90, ROWS)], 1e6),
    "whole numbers": ([str(x) for x in AMOUNTS], 1e6),
    "four digits before the point": ([f"{x}.125" for x in AMOUNTS], 1e8),
    "a few": (["12.345"] * 19 + [str(x) for x in AMOUNTS], 1e6),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_decimals_raise_no_alarm(name):
    cells, bound = ORDINARY[name]
    assert "thousands-points" not in told(cells, -bound, bound)


def test_numbers_that_are_stored_as_such_have_no_point_that_separates_thousands():
    assert told(AMOUNTS / 1000, 0, 1e6) == told(pa.array(AMOUNTS / 1000), 0, 1e6) == {}


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_doubts_do_not_depend_on_the_batches(batch):
    late = pa.table({"x": [*dotted(AMOUNTS), "0.5"], "y": np.append(mixed(UNIFORM, -999.0, 0.1), 1e9)})
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1e6), dpgram.Numeric("y", 0, 80)])
    whole = dpgram.check(late, schema).to_dict()
    assert {each["code"] for each in whole["findings"] if each["column"] == "y"} == {"clamped-lower", "codes"}
    assert dpgram.check(pa.Table.from_batches(late.to_batches(max_chunksize=batch)), schema).to_dict() == whole
