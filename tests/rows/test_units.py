"""How many rows each unit has: what is one id and what are two, in every type, with the compiled table and without it."""

from __future__ import annotations

import datetime
import decimal
import re
import threading
import uuid
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import MechanismError, TableError
from dpgram.native.library import kernel
from dpgram.rows import units
from dpgram.rows.units import UnitIndex

ENOUGH = 10**9


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def either(request, monkeypatch):
    """Every test twice: with the kernel, and with Python's own objects."""
    if request.param == "compiled" and kernel() is None:
        pytest.skip("there is no compiled kernel")
    if request.param == "plain":
        monkeypatch.setattr(units, "kernel", lambda: None)


def counted(*columns) -> UnitIndex:
    index = UnitIndex(ENOUGH)
    for cells in columns:
        index.add(cells)
    return index


SEVENS = [
    *(pa.array([7], kind) for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64())),
    *(pa.array([7.0], kind) for kind in (pa.float32(), pa.float64())),
    pa.array(np.array([7.0], np.float16)),
    *(pa.array(["7"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *(pa.array([b"7"], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))),
    *(
        pa.array(["7.0"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())
    ),  # as pandas writes beside a missing id
    pa.array([b"7.000"], pa.binary(5)),
    pa.array(["7.0"]).dictionary_encode(),
    pa.array(["", "7.00"]).slice(1),
    pa.array([7], pa.int16()).dictionary_encode(),
    pa.array(["7"]).dictionary_encode(),
    pa.array([decimal.Decimal(7)], pa.decimal128(20, 0)),
    pa.array([decimal.Decimal(7)], pa.decimal128(20, 2)),
    np.array([7]),
    np.array([7.0]),
    np.array([7], ">i4"),
    np.array(["7"]),
    np.array([b"7"]),
    np.array(["7.0"]),
    np.array(["7"], object),
    np.array(["7.0"], object),
    np.array([7], object),
    np.array([7.0], object),
    np.array([np.float32(7)], object),
    np.array([decimal.Decimal(7)], object),
    np.array([decimal.Decimal("7.00")], object),
    np.array([decimal.Decimal("0.7E+1")], object),
]


@pytest.mark.parametrize(
    "cells", SEVENS, ids=lambda cells: f"{type(cells).__name__}-{getattr(cells, 'type', getattr(cells, 'dtype', ''))}"
)
def test_seven_is_seven(cells):
    index = counted(pa.array([7, 8]), cells)
    assert index.units == 2
    assert index.counts(cells).tolist() == [2]
    assert all(index.counts(other).tolist() == [2] for other in SEVENS)
    assert index.counts(cells).dtype == np.int64


DIFFERENT = [
    "7", "07", "007", "+7", "7.", "7.01", "7.10", ".0", "-.0", "7.0.0", "x7.0", "7.0x", "7.0\n", "7,0", "٧.0",
    " 7", "7 ", "-7", "7e0", "٧", "７",  # digits that are not ASCII
    "0", "-0", "00", "a", "A", "ß", "SS", "ss", "é", "e\u0301", "\u212b", "\u00c5", "A\u030a", "x\0", "x", "x\0\0", "\0", "\ufeffx",
    "true", "True", "NaN", "nan", "null", "None", "NA", "\t", "\n", "-", "1e5", "100000",
    "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
    "-9223372036854775808", "-9223372036854775809", "123456789012345", "1234567890123456",
    "abcdefghijklmno", "abcdefghijklmnop", "abcdefghijklmnoP", "0123456789abcdef",
    "c0ffee00-0000-4000-8000-000000000000", "C0FFEE00-0000-4000-8000-000000000000", "x" * 1000, "x" * 1001,
]  # fmt: skip


def test_texts_that_differ_in_a_byte_are_different_units():
    cells = pa.array(DIFFERENT * 3)
    index = counted(cells)
    assert index.units == len(set(DIFFERENT)) == len(DIFFERENT)
    assert index.counts(cells).tolist() == [3] * len(cells)


def test_bytes_that_are_no_text_are_ids_as_well():
    cells = pa.array([b"\xff", b"\xff\xfe", b"\x80" * 40, b"\x80" * 41, b"\xff"], pa.binary())
    assert counted(cells).counts(cells).tolist() == [2, 1, 1, 1, 2]


MISSING = [
    pa.array([None, 1, None]),
    pa.array([None, "", "x"]),
    pa.array([b"", b"", None], pa.binary()),
    pa.array([np.nan, None, 2.0]),
    pa.array([np.nan, None, 2.5]),
    pa.nulls(3),
    pa.array(["", None, "x"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array([None, "a", ""])),
    np.array([np.nan, 1.0, 0.5]),
    np.array(["", "a"]),
    np.array([None, "", "a", np.nan], object),
]


@pytest.mark.parametrize("cells", MISSING, ids=str)
def test_what_is_missing_is_no_unit(cells):
    index, found = counted(cells, cells), counted(cells, cells).counts(cells)
    there = [cell not in (None, "", b"") and cell == cell for cell in cells.tolist()]
    assert (found > 0).tolist() == there
    assert index.units == len({str(cell) for cell, known in zip(cells.tolist(), there, strict=True) if known})


def test_objects_that_stand_for_a_text_are_ids():
    one, other = uuid.UUID(int=1), uuid.UUID(int=2)
    index = counted(np.array([one, other, one, str(one)], object))
    assert index.units == 2
    assert index.counts(pa.array([str(one), str(other)])).tolist() == [3, 1]


def test_a_point_and_zeros_behind_a_whole_number_do_not_count():
    texts = ["7", None, "x.0", "-7.0", "07.0", "123456789012345678901234567890.00", "7.0", "", "-7", "07", "0.0", "7"]
    index = counted(pa.array(texts), pa.array(["before", *texts]).slice(1), pa.array([b"\xff.0", b"\xff"]))
    assert index.units == 8
    assert index.counts(pa.array(texts)).tolist() == [6, 0, 2, 4, 4, 2, 6, 0, 4, 4, 2, 6]
    assert index.counts(pa.array(["123456789012345678901234567890", "0", "x.0"])).tolist() == [2, 2, 2]


LARGE = [2.0**53 + 2, 1e16, 1e17, 2.0**60, -(2.0**62), 2.0**63, -(2.0**63), 2.0**64 - 2048, 2.0**64, 1e22, -1e30, 1.7e308]


def test_floats_that_are_whole_are_whole_numbers_of_any_size():
    """One file has them as integers, the next as floats."""
    forms = [
        pa.array(LARGE),
        pa.array([str(int(x)) for x in LARGE]),
        np.array(LARGE, object),
        np.array([int(x) for x in LARGE], object),
        pa.array([*LARGE, 0.5]).slice(0, len(LARGE)),
    ]
    for index in (counted(form) for form in forms):
        assert index.units == len(LARGE)
        assert all(index.counts(form).tolist() == [1] * len(LARGE) for form in forms)
    index = counted(
        pa.array([10**17, 2**62]), pa.array([1e17, 2.0**62, 0.5, None]), pa.array([2**63], pa.uint64()), pa.array([2.0**63])
    )
    assert index.units == 4
    assert index.counts(pa.array([2**62], pa.uint64())).tolist() == [2]
    assert counted(pa.array([2.0**60], pa.float32())).counts(pa.array([2**60])).tolist() == [1]


def test_floats_that_are_not_whole_are_what_arrow_writes():
    floats = pa.array([0.5, 1e300, -0.0, 0.0, 2.0**53, 2.0**53 + 2, np.inf, -np.inf, 1e-5, 0.1, 3.0, None])
    index = counted(floats)
    assert index.units == 10
    assert index.counts(floats).tolist() == [1, 1, 2, 2, *[1] * 7, 0]
    texts = ["0.5", str(int(1e300)), "0", "9007199254740992", "inf", "0.1", "3"]
    assert index.counts(pa.array(texts)).tolist() == [1, 1, 2, 1, 1, 1, 1]
    assert counted(pa.array([0.1], pa.float32())).counts(pa.array(["0.1"])).tolist() == [1]


def test_truth_values_and_dates_are_what_arrow_writes():
    day, time = datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 1, 2, 3)
    index = counted(pa.array([True, False, None]), pa.array([day]), pa.array([time], pa.timestamp("s")))
    assert index.units == 4
    assert index.counts(pa.array(["true", "false", "2026-01-31", "2026-01-31 01:02:03"])).tolist() == [1] * 4


@pytest.mark.parametrize(
    "cells", [pa.array([[1], [2]]), pa.array([{"a": 1}]), pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8()))]
)
def test_cells_of_several_parts_are_refused(cells):
    with pytest.raises(TableError, match="the ids of units are of type .*They must be text or whole numbers"):
        counted(cells)


def test_a_dictionary_is_its_values():
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 1, 0] * 4), pa.array(["a", "b", "a"]))  # one of them twice
    index = counted(cells, cells.slice(3, 2), pa.array(["a"]))
    assert index.counts(pa.array(["a", "b"])).tolist() == [13, 9]
    assert index.counts(cells.slice(1, 3)).tolist() == [9, 13, 0]
    many = pa.DictionaryArray.from_arrays(pa.array([500, 3]), pa.array([str(i) for i in range(1000)]))
    assert counted(many).counts(pa.array([500, 3])).tolist() == [1, 1]


def test_a_place_outside_a_dictionary_is_an_error():
    cells = pa.DictionaryArray.from_arrays(pa.array([0, -1, 0]), pa.array(["a", "b"]), safe=False)
    with pytest.raises((IndexError, pa.ArrowException)):
        counted(cells)


CHANGED = r"^the table was changed since the rows of units were counted\. Run again when nothing writes to it\.$"  # no number


def test_a_unit_that_was_never_counted_is_an_error():
    index = counted(pa.array([1, 2, 3]))
    with pytest.raises(TableError, match=CHANGED):
        index.counts(pa.array([1, 4]))
    assert index.counts(pa.array([], pa.string())).tolist() == []


def test_a_pass_over_many_cells_at_once_reads_all_marks():
    """Keys are made of so many rows at a time; the marks of all of them add up, and a change among the first is noticed."""
    cells = np.arange(units.ROWS_AT_A_TIME * 2 + 5) % 1000
    index = counted(cells)
    reading = index.reading()
    reading.counts(cells)
    reading.check()
    other, cells[0] = index.reading(), 1
    other.counts(cells)
    with pytest.raises(TableError, match="changed"):
        other.check()


def test_a_pass_that_reads_other_ids_is_noticed():
    ids = pa.array([1, 1, 2, 3, None])
    index = counted(ids)
    whole = index.reading()
    for start in (3, 0, 1, 2, 4):  # in any order
        whole.counts(ids.slice(start, 1))
    whole.check()
    for others in ([1, 1, 2, None, None], [1, 2, 2, 3, None], [1, 1, 2, 3, 3], []):
        changed = index.reading()
        changed.counts(pa.array(others, pa.int64()))
        with pytest.raises(TableError, match=CHANGED):
            changed.check()


def test_nobody_can_foresee_the_marks():
    """Else other ids could be chosen whose marks add up to the same."""
    ids = pa.array(["a", "a long id that has no key of its own", None])
    assert len({counted(ids).mark for _ in range(5)}) == 5


def test_nothing_is_counted_once_numbers_were_asked_for():
    index = counted(pa.array([1]))
    assert index.units == 1
    with pytest.raises(MechanismError, match="bug"):
        index.add(pa.array([1]))


def test_more_than_the_limit_is_an_error_that_tells_no_number_of_units():
    index = UnitIndex(12_000_000)
    words = r"more than 12 MB of memory. Allow more with --memory \(memory= in Python\), in megabytes"
    with pytest.raises(TableError, match=words) as told:
        index.add(pa.array(np.arange(2 * 10**6)))
    assert re.findall(r"\d+", str(told.value)) == ["12"]
    with pytest.raises(TableError, match="more than 12 MB"):  # what was counted is worthless
        index.counts(pa.array([1]))


def test_the_limit_is_about_ids_however_many_threads_count_them():
    """Else a long table, which all threads of a large machine read, would be refused, and a short one would not."""
    index = UnitIndex(5_000_000)
    for start in range(64):
        thread = threading.Thread(target=index.add, args=(pa.array(np.arange(10) + 10 * start),))
        thread.start()
        thread.join()
    assert index.units == 640


@pytest.mark.parametrize("cells", [[7.0, np.nan, 9.0], [7.5, np.nan, 9.0]], ids=["whole", "not whole"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_an_id_that_is_no_number_says_nothing_whatever_its_bits(cells, kind):
    """A signalling NaN makes NumPy warn, and a warning would depend on somebody's row. Warnings are errors here."""
    quiet = np.array(cells, kind)
    loud = quiet.copy()
    bits = loud.view(np.uint64 if kind is np.float64 else np.uint32)
    bits[1] = 0x7FF0000000000001 if kind is np.float64 else 0x7F800001
    for ids in (loud, pa.array(loud)):
        index = counted(ids)
        assert index.units == 2
        assert index.counts(ids).tolist() == counted(quiet).counts(quiet).tolist() == [1, 0, 1]


def test_one_id_for_all_rows_and_an_id_for_each():
    cells = np.concatenate([np.zeros(150_000, np.int64), np.arange(1, 100_001)])
    index = counted(cells)
    assert index.units == 100_001
    found = index.counts(cells)
    assert (found[:150_000] == 150_000).all()
    assert (found[150_000:] == 1).all()
    assert 8 * index.units < index.nbytes < (200 if units.kernel() is None else 40) * index.units


@pytest.mark.parametrize(("many", "rows"), [(5000, 40_000), (1, 1_000_000)])
def test_threads_count_together(many, rows):
    """Few ids are in few tables, which all threads want at the same time: without a lock some rows are lost."""
    index, ids = UnitIndex(ENOUGH), np.random.default_rng(0).integers(-many, many, (8, rows))
    threads = [threading.Thread(target=lambda part=part: [index.add(piece) for piece in np.split(part, 8)]) for part in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values, times = np.unique(ids, return_counts=True)
    assert index.units == len(values)
    np.testing.assert_array_equal(index.counts(values), times)


TEXTS = (
    st.text(max_size=40)
    | st.integers(-(2**70), 2**70).map(str)
    | st.sampled_from(DIFFERENT)
    | st.from_regex(r"-?[0-9]{0,3}\.?0{0,3}", fullmatch=True)
)


def id_of(text: str) -> str:
    """What an id is, once more."""
    whole, point, zeros = text.partition(".")
    digits = whole.removeprefix("-")
    return whole if point and zeros and not zeros.strip("0") and digits.isascii() and digits.isdigit() else text


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(st.none() | TEXTS, max_size=60), max_size=4))
def test_any_texts(columns):
    index, expected = UnitIndex(ENOUGH), Counter(id_of(text) for column in columns for text in column if text)
    for column in columns:
        index.add(pa.array(column, pa.string()))
    for column in columns:
        counts = [expected[id_of(text)] if text else 0 for text in column]
        assert index.counts(pa.array(column, pa.string())).tolist() == counts
    assert index.units == len(expected)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.none() | st.floats(), max_size=60), st.lists(st.integers(-(2**53), 2**53), max_size=60))
def test_any_numbers(floats, wholes):
    """Floats are the same id where they are equal, and the same as a whole number where they are one."""
    index = counted(pa.array(floats, pa.float64()), pa.array(wholes, pa.int64()))
    there = [x for x in floats if x is not None and x == x]
    expected = Counter(there) + Counter(wholes)  # of Python's numbers those that are equal are one key
    found = index.counts(pa.array(floats, pa.float64())).tolist()
    assert found == [0 if x is None or x != x else expected[x] for x in floats]
    assert index.counts(pa.array(wholes, pa.int64())).tolist() == [expected[x] for x in wholes]
    assert index.units == len(expected)
