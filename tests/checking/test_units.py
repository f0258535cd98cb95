"""Ids and weights: whose rows are whose, and what they count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpgram
from dpgram.checking import units as module
from dpgram.checking.units import UnitCounts, UnitTally
from dpgram.errors import ColumnTypeError

X = np.random.default_rng(2).uniform(0, 10, 60)


def check(table, **more):
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 10)], **more)
    return dpgram.check({"x": X} | table, schema)


def told(found):
    return {(each.code): each.share for each in found.findings}


def with_ids(ids, most=1):
    return check({"id": ids}, unit_id="id", rows_per_unit=most)


def test_units_with_more_rows_than_count():
    ids = np.repeat(np.arange(20), 3)
    assert told(with_ids(ids, 3)) == {}
    assert told(with_ids(ids, 2)) == {"rows-per-unit": 1.0}
    uneven = np.concatenate([np.zeros(11), np.arange(1, 50)])
    assert told(with_ids(uneven, 10)) == {"rows-per-unit": 1 / 50}
    assert with_ids(uneven, 10).whole["units"] == 50


def test_rows_without_an_id_do_not_count():
    ids = [None, ""] + [f"p{k}" for k in range(58)]
    found = with_ids(ids)
    assert told(found) == {"no-id": 2 / 60}
    assert found.whole["rows_counting"] == 58 / 60


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p1", "P1"),
        ("p1", "p1 "),
        ("p1", " p1"),
        ("p1", "P1\t"),
        ("7", "07"),
        ("7", "00007"),
        ("7", " 7.0"),
        ("7", "7."),
        ("7", "+7"),
        ("7", "７"),  # full-width
        ("0", "00"),
        ("-7", "-07"),
        ("7a", "07A"),
        ("\u00e9", "e\u0301"),
        ("\u00c9", "e\u0301 "),
        ("straße", "STRASSE"),
        ("Σας", "ΣΑΣ"),
        ("ﬁ", "FI"),
        ("\u212b", "\u00e5"),
        ("p1", "p1\u200b"),
        ("p1", "\ufeffp1"),
        ("p1", "'p1"),
        ("p1", '"p1"'),
        ("7", "'007"),
        ("p-1", "p\u20131"),
        ("-7", "\u22127"),
    ],
)
def test_ids_that_differ_only_in_how_they_are_written(one, other):
    ids = [f"q{k}" for k in range(58)] + [one, other]
    found = with_ids(ids)
    assert told(found) == {"ids-alike": 2 / 60}
    words = next(each.words for each in found.findings)
    assert words == (
        "3.3 % of the ids differ from another id only in how they are written, such as in case, white space, leading zeros, a decimal "
        "point, quotation marks, dashes, characters that cannot be seen or Unicode form, and count as other units"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [("7", "70"), ("7", "-7"), ("a", "ä"), ("7.5", "7"), ("0", "0.5"), ("x0", "x"), ("i", "ı"), ("1-11", "11-1")],
)
def test_ids_that_are_not_alike(one, other):
    assert "ids-alike" not in told(with_ids([f"q{k}" for k in range(58)] + [one, other]))


@pytest.mark.parametrize("word", ["NA", "unknown", "   ", "n/a", "-", "None", "NULL", "?", " na "])
def test_words_for_a_missing_id_are_named(word):
    """They count as the id of one unit."""
    found = with_ids([word] * 12 + [f"p{k}" for k in range(48)], 12)
    assert told(found) == {"placeholder-ids": 0.2}
    assert found.whole["units"] == 49
    (finding,) = found.findings
    assert "rows with the same word count as those of one person" in finding.words
    assert finding.do == "Leave such ids empty in the source. Rows without an id do not count."
    assert "rows with a word for a missing id" in str(found)


@pytest.mark.parametrize("word", ["nan7", "0", "Nan Li", "x", "N", "none1"])
def test_ids_that_are_hardly_words_for_a_missing_one(word):
    assert told(with_ids([word] * 12 + [f"p{k}" for k in range(48)], 12)) == {}


@pytest.mark.parametrize("codes", [["0"], ["0", "-1"], ["0", "-1", "9999"]])
def test_ids_that_may_stand_for_a_missing_one_are_named(codes):
    """They are as good as any id, but for the many rows that they have: far more than any other."""
    ids = codes * 20 + [f"{k + 100}" for k in range(300)]
    found = check({"id": ids, "x": np.arange(len(ids)) % 10}, unit_id="id", rows_per_unit=1)
    finding = next(each for each in found.findings if each.code == "crowded-ids")
    assert finding.share == 20 * len(codes) / len(ids)
    assert ("have the same id, and" if len(codes) == 1 else f"have one of {len(codes)} ids, and") in finding.words
    assert finding.do.startswith("If they stand for a missing id, such as 0, -1 or 9999, leave such ids empty in the source.")


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ([20, *[1] * 40], 2),  # not ten times as many as count in full
        ([20, 2, *[1] * 38], 1),  # nor as another id has
        ([30, 30, 30, 30, *[1] * 40], 1),  # too many of them
        ([11, *[1] * 3000], 1),  # too few rows
        ([60], 1),
    ],
)
def test_units_of_many_rows_are_hardly_missing_ids(rows, most):
    ids = np.repeat(np.arange(len(rows)), rows)
    assert "crowded-ids" not in told(check({"id": ids, "x": np.arange(len(ids)) % 10}, unit_id="id", rows_per_unit=most))


def test_words_for_a_missing_id_are_counted_beyond_the_most_ids(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 1)
    monkeypatch.setattr(module, "MOST_IDS", 1)
    tally = UnitTally()
    for _ in range(3):
        tally.add(pa.array(["a", "b", "NA", "7.25"]))
    assert (tally.overflown, tally.saying_nothing, tally.fractions) == (True, 3, 3)


@pytest.mark.parametrize(
    ("ids", "share"),
    [
        (np.arange(60) + 0.25, 1),
        (pa.array(np.where(np.arange(60) < 6, 7.5, np.arange(60.0))), 0.1),
        (["7.25", "-0.5", ".5"] + [str(k) for k in range(57)], 3 / 60),
        (np.full(60, 1e-7), 1),
    ],
)
def test_ids_with_a_fraction_are_named(ids, share):
    """A release takes them: whether it did would depend on a cell."""
    found = with_ids(ids, 60)
    assert told(found)["fractional-ids"] == share
    table = {"x": X, "id": ids}
    made = dpgram.release(table, found.schema, epsilon=1, delta=1e-9, mechanism="gaussian-noise")
    assert made.units == found.whole["units"]


@pytest.mark.parametrize(
    "ids", [np.arange(60.0), [f"{k}.0" for k in range(60)], [f"1.2.{k}" for k in range(60)], np.arange(60) + 2.0**60]
)
def test_ids_without_a_fraction(ids):
    assert "fractional-ids" not in told(with_ids(ids))


REFUSED = [
    pa.array([True] * 60),
    pa.array([0] * 60, pa.date32()),
    pa.array(["1.50"] * 60).cast(pa.decimal128(9, 2)),
    pa.array([[1]] * 60),
]


@pytest.mark.parametrize("ids", REFUSED, ids=lambda ids: str(ids.type))
def test_ids_of_a_type_that_a_release_refuses_are_a_finding(ids):
    found = with_ids(ids)
    (finding,) = found.findings
    assert (finding.column, finding.code) == ("id", "wrong-kind")
    assert finding.words.startswith(
        f"this column is the unit_id, and needs a type of text or of whole numbers, but the table stores {ids.type}"
    )
    with pytest.raises(ColumnTypeError, match="column 'id' is the unit_id, but"):
        dpgram.release({"x": X, "id": ids}, found.schema, epsilon=1, delta=1e-9)


def test_ids_of_two_years_one_of_which_lacks_an_id(tmp_path):
    """pandas writes 7 into one file and 7.0 into the next."""
    pd.DataFrame({"id": [7, 8], "x": 1}).to_csv(tmp_path / "2019.csv", index=False)
    pd.DataFrame({"id": [7, 8, None], "x": 1}).to_csv(tmp_path / "2020.csv", index=False)
    assert "7.0" in (tmp_path / "2020.csv").read_text()
    whole = "\n".join([(tmp_path / "2019.csv").read_text().strip(), *(tmp_path / "2020.csv").read_text().splitlines()[1:]])
    (tmp_path / "both.csv").write_text(whole + "\n")
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 10)], unit_id="id", rows_per_unit=2)
    found = dpgram.check(tmp_path / "both.csv", schema)
    made = dpgram.release(tmp_path / "both.csv", schema, epsilon=1, delta=1e-9, mechanism="gaussian-noise")
    assert (made.units, found.whole["units"], found.whole["ids_alike"]) == (2, 2, 0)


@pytest.mark.parametrize("ids", [[7, 7.0, "7"] * 20, np.full(60, 7), np.full(60, 7.0)])
def test_a_number_and_its_text_are_one_id(ids):
    values = pa.array(ids) if isinstance(ids, np.ndarray) else ["7" if x != "7" else x for x in ids]
    assert with_ids(values, 60).whole["units"] == 1


def test_ids_are_never_told():
    ids = ["SECRET"] * 30 + ["secret"] * 30
    found = with_ids(ids)
    assert set(told(found)) == {"rows-per-unit", "ids-alike"}
    assert "secret" not in (str(found) + str(found.to_dict()) + found.suggested_schema).lower()


def test_counts_of_many_batches_are_those_of_one(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 150)
    ids = np.random.default_rng(3).integers(0, 500, 5000)
    many, one = UnitTally(), UnitTally()
    one.add(ids)
    for part in np.array_split(ids, 50):
        many.add(part)
    assert many.counts(10) == one.counts(10)
    assert one.counts(10).above == (np.bincount(ids) > 10).sum()


@pytest.mark.parametrize("ids", [
    ["", None, "a", "aa", "aaa", "b", "ab", "ba", "a\x00", "\x00a", "é", "e\u0301", "7", "07", "x" * 5000, "x" * 4999 + "y"],
    [f"{k:09d}" for k in range(20_000)],
    [b"\xff", b"a", b"A "],
])  # fmt: skip
def test_ids_are_told_apart_by_their_bytes(ids):
    tally = UnitTally()
    tally.add(pa.array(ids))
    tally.add(pa.array(["before", *ids])[1:])  # a slice has the same ids
    valid = {each for each in ids if each}
    assert tally.counts(1) == UnitCounts(len(valid), len(valid), 2 if b"A " in valid else 4 if "07" in valid else 0)


@pytest.mark.parametrize("ids", [
    pa.array([bytes([k, 0, 255, 128]) for k in range(60)], pa.binary(4)),  # as UUIDs are often kept: no text
    pa.array([b"\xff", b"\xfe", None] * 20),
    pa.array([2**63 + k % 7 for k in range(60)], pa.uint64()),
    np.array([1.0, 2.5, np.nan] * 20),
])  # fmt: skip
def test_a_check_and_a_release_find_the_same_units(ids):
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 10)], unit_id="id", rows_per_unit=1)
    table = {"x": X, "id": ids}
    made = dpgram.release(table, schema, epsilon=1, delta=1e-9, mechanism="gaussian-noise")
    assert dpgram.check(table, schema).whole["units"] == made.units


def test_ids_that_are_white_space_are_ids():
    tally = UnitTally()
    tally.add(pa.array([" ", "  ", "a"]))
    assert tally.counts(1) == UnitCounts(3, 0, 2)


def test_a_table_without_an_id():
    tally = UnitTally()
    assert tally.counts(1) == UnitCounts(0, 0, 0)
    tally.add(pa.nulls(3))
    assert (tally.without, tally.counts(1)) == (3, UnitCounts(0, 0, 0))


def test_too_many_ids_are_said(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 1)
    monkeypatch.setattr(module, "MOST_IDS", 10)
    ids = pa.chunked_array([[k, k + 1] for k in range(0, 60, 2)])
    parts = pa.Table.from_batches(pa.table({"x": pa.chunked_array([X]), "id": ids}).to_batches(max_chunksize=2))
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 10)], unit_id="id", rows_per_unit=1)
    found = dpgram.check(parts, schema)
    assert told(found) == {"too-many-ids": None}
    assert "units" not in found.whole


def test_an_id_that_is_a_declared_column_too():
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 10)], unit_id="x", rows_per_unit=1)
    assert dpgram.check({"x": X}, schema).whole["units"] == 60


WEIGHTS = [
    ("weight-missing", [None] * 6 + [1.0] * 54, 0.1),
    ("weight-negative", [-1.0] * 6 + [1.0] * 54, 0.1),
    ("weight-above", [5.0] * 6 + [1.0] * 54, 0.1),
    ("weight-zero", [0.0] * 33 + [1.0] * 27, 0.55),
    ("decimal-comma", ["1,5"] * 6 + ["1"] * 54, 0.1),
    ("not-finite", [np.inf] * 6 + [1.0] * 54, 0.1),
    ("weight-small", np.linspace(0.001, 0.19, 60), 1.0),
]


@pytest.mark.parametrize(("code", "weights", "share"), WEIGHTS)
def test_weights(code, weights, share):
    found = check({"w": weights}, weight="w", largest_weight=2.0)
    assert told(found) == {code: share}
    counting = 1.0 if code in ("weight-above", "weight-small") else 1 - share
    assert found.whole["rows_counting"] == pytest.approx(counting)


def test_weights_that_are_as_they_should_be():
    found = check({"w": np.linspace(0, 2, 60)}, weight="w", largest_weight=2.0)
    assert told(found) == {}
    assert found.whole["weights_zero"] == 1 / 60
    assert found.whole["weights_above_largest"] == 0
    assert told(check({"w": np.ones(60)}, weight="w", largest_weight=2.0)) == {}  # the same for all is no mistake


def test_columns_of_ids_and_weights_that_are_not_there():
    found = check({}, weight="w", largest_weight=2.0, unit_id="id", rows_per_unit=1)
    assert found.absent == ("id", "w")
    assert [each.code for each in found.findings] == ["absent", "absent"]


def with_weight(weights, lower=0.0, upper=2.0):
    """Codes that are found in a column of weights that is declared, too."""
    columns = [dpgram.Numeric("x", 0, 10), dpgram.Numeric("w", lower, upper)]
    schema = dpgram.Schema(unit="person", columns=columns, weight="w", largest_weight=2.0)
    return [(each.code, each.share) for each in dpgram.check({"x": X, "w": weights}, schema).findings if each.column == "w"]


@pytest.mark.parametrize(
    ("weights", "code"),
    [
        (["1,5"] * 6 + ["1"] * 27 + ["2"] * 27, "decimal-comma"),
        ([-1.0] * 6 + [1.0] * 27 + [2.0] * 27, "weight-negative"),
        ([5.0] * 6 + [1.0] * 27 + [2.0] * 27, "weight-above"),
        ([None] * 6 + [1.0] * 27 + [2.0] * 27, "weight-missing"),
    ],
)
def test_a_weight_that_is_a_declared_column_is_told_of_once(weights, code):
    assert with_weight(weights) == [(code, 0.1)]


def test_bounds_of_a_weight_that_differ_from_the_largest_weight_are_told_of_besides():
    weights = [5.0] * 6 + [3.0] * 6 + [1.0] * 24 + [2.0] * 24
    assert with_weight(weights, upper=4.0) == [("clamped-upper", 0.1), ("weight-above", 0.2)]


@pytest.mark.parametrize("declared", [False, True])
def test_a_weight_that_is_stored_as_text(declared):
    columns = [dpgram.Numeric("x", 0, 10), *([dpgram.Numeric("w", 0, 2)] if declared else [])]
    schema = dpgram.Schema(unit="person", columns=columns, weight="w", largest_weight=2.0)
    table = pa.table({"x": X, "w": ["1"] * 20 + ["2"] * 20 + ["1,5"] * 20})
    found = [each for each in dpgram.check(table, schema).findings if each.column == "w"]
    assert [each.code for each in found] == ["wrong-kind", "decimal-comma"]
    if not declared:
        assert found[0].words == (
            "this column is the weight, and needs a type of numbers, but the table stores string, so a release will refuse it"
        )
        assert found[0].do == "Convert it in the source."
