"""Cells to numbers: clamping, scaling, levels, and every way a cell can be missing."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpgram import Boolean, Categorical, Date, Numeric, Schema
from dpgram.encoding.cells import as_numbers
from dpgram.encoding.encode import Encoder
from dpgram.errors import ColumnTypeError


def encoded(column, cells, *, untyped=False, intercept=True):
    """The encoded rows of one column, without the intercept."""
    schema = Schema(unit="p", columns=[column], intercept=intercept)
    if not isinstance(cells, pa.Array):
        cells = pa.array(cells, pa.binary()) if untyped else pa.array(cells)
    batch = pa.record_batch({column.name: cells})
    out = Encoder(schema, untyped=frozenset([column.name] if untyped else [])).encode(batch)
    if intercept:
        assert (out[0] == 1).all()
    return out[int(intercept) :]


def test_numbers_are_clamped_and_scaled():
    assert encoded(Numeric("x", 0, 10), [0.0, 5.0, 10.0, -3.0, 99.0, 2.5]).tolist() == [[-1, 0, 1, -1, 1, -0.5]]


def test_missing_numbers_become_the_midpoint_or_the_constant():
    cells = [None, np.nan, np.inf, -np.inf]
    assert encoded(Numeric("x", 0, 10), cells).tolist() == [[0, 0, 0, 0]]
    assert encoded(Numeric("x", 0, 10, missing=10), cells).tolist() == [[1, 1, 1, 1]]


def test_without_an_intercept_zero_stays_zero():
    assert encoded(Numeric("x", -1, 4), [0.0, 4.0, -1.0, -9.0], intercept=False).tolist() == [[0, 1, -0.25, -0.25]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"5", 0.0), (b" 7.5 ", 0.5), (b"+10", 1.0), (b"1e1", 1.0), (b".5", -0.9), (b"5.", 0.0), (b"-1E+3", -1.0),
        (b"1e999", None), (b"nan", None), (b"inf", None), (b"-Infinity", None), (b"", None), (b"  ", None), (None, None),
        (b"5,0", None), (b"1_0", None), (b"0x5", None), (b"5 6", None), (b"five", None), (b"--5", None), (b"5\x00", None),
        (b"\xff\xfe", None), (b"5\xff", None), ("٥".encode(), None), (b"1e", None), (b"NULL", None), (b"\t5\r", 0.0),
        (b"9" * 400, None), (b"0." + b"3" * 4000, -14 / 15), (b"1" + b"0" * 300, 1.0),
    ],
)  # fmt: skip
def test_text_cells_parse_or_are_missing(text, value):
    column = Numeric("x", 0, 10, missing=2)
    expected = -0.6 if value is None else value
    assert encoded(column, [text], untyped=True)[0, 0] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, 2, None], pa.int8()),
        pa.array([1, 2, None], pa.uint64()),
        pa.array([1.0, 2.0, None], pa.float16()),
        pa.array([1.0, 2.0, np.nan], pa.float32()),
        pa.array([Decimal("1.00"), Decimal("2.00"), None], pa.decimal128(10, 2)),
        pa.array([Decimal("1.00"), Decimal("2.00"), None], pa.decimal256(40, 2)),
        pa.array([1, 2, None]).dictionary_encode(),
        pa.array([1.0, 2.0, None]).dictionary_encode(),
    ],
    ids=lambda cells: str(cells.type),
)
def test_every_type_of_number_is_taken(cells):
    assert encoded(Numeric("x", 0, 4), cells).tolist() == [[-0.5, 0, 0]]


def test_a_column_without_a_type_is_all_missing():
    assert encoded(Numeric("x", 0, 4, missing=4), pa.nulls(2)).tolist() == [[1, 1]]
    assert encoded(Boolean("x", missing=True), pa.nulls(2)).tolist() == [[1, 1]]
    assert encoded(Categorical("x", ["a", "b"], missing="level"), pa.nulls(2)).tolist() == [[0, 0], [1, 1]]
    assert encoded(Categorical("x", [1, 2], missing="level"), pa.nulls(2)).tolist() == [[0, 0], [1, 1]]


TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()),
]


@pytest.mark.parametrize("type_", TEXT_TYPES, ids=str)
def test_levels_by_text(type_):
    cells = pa.array(["a", "b", "c", "?", None, ""]).cast(type_)
    plain = Categorical("c", ["a", "b", "c"])
    assert encoded(plain, cells).tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]]
    full = Categorical("c", ["a", "b", "c"], other=True, missing="level")
    assert encoded(full, cells)[2:].tolist() == [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]]


@pytest.mark.parametrize("type_", [pa.string(), pa.string_view(), pa.large_binary(), pa.int16(), pa.float64()], ids=str)
def test_levels_of_a_dictionary_are_those_of_its_cells(type_):
    """Few values in many cells are looked up once each; a null may stand among the values or among the indices."""
    text = pa.types.is_string(type_) or pa.types.is_string_view(type_) or pa.types.is_large_binary(type_)
    values = pa.array(["2", "1", "", None, "7"] if text else [2, 1, 1, None, 7]).cast(type_)
    places = [0, 1, 2, 3, 4, None, 1, 0, 0, 4, None, 2]
    dictionary = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values)
    cells = pa.array([None if place is None else values[place].as_py() for place in places]).cast(type_)
    columns = [Categorical("c", ["1", "2"]), Categorical("c", ["1", "2"], other=True, missing="level")]
    columns += [Categorical("c", [1, 2], other=True), Categorical("c", [1, 2], missing="level")] if not text else []
    for column in columns:
        assert encoded(column, dictionary).tolist() == encoded(column, cells).tolist()
        assert encoded(column, dictionary.slice(3, 8)).tolist() == encoded(column, cells.slice(3, 8)).tolist()


def old_if_else(condition, left, right):
    """Arrow's before version 24 (apache/arrow#49410): with a null it keeps the offsets of a slice, and too few bytes from the array's first
    one on, so that the last cells are made of whatever lies behind."""
    text = right if left is None else left if right is None else None
    if text is None or text.type not in (pa.large_string(), pa.large_binary()) or not len(text):
        return if_else(condition, left, right)
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    held, wanted = text.buffers()[2].to_pybytes(), offsets[-1] - offsets[0]
    kept = pa.py_buffer(held[:wanted] + b"?" * offsets[0])
    bent = pa.Array.from_buffers(text.type, len(text), [None, pa.py_buffer(offsets.tobytes()), kept])
    nulls = pa.nulls(len(text), text.type)
    bent = if_else(text.is_null(), nulls, bent)
    return if_else(condition, nulls, bent) if left is None else if_else(condition, bent, nulls)


if_else = pc.if_else


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()], ids=str)
@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (Numeric("x", 0, 100), ["12", "7", None, "x", " 100", "", "true"]),
        (Boolean("x"), ["1", "no", None, "x", "yes", "", "true"]),
        (Categorical("x", ["12", "u"], other=True, missing="level"), ["12", "u", None, "long", "u", "", "u"]),
        (
            Date("x", "2020-01-01", "2022-01-01"),
            ["2021-03-04", "2020-01-01 10:30", None, "x", "2021-12-31T23:59:59Z", "", "2020-05-05"],
        ),
    ],
    ids=["numeric", "boolean", "categorical", "date"],
)
def test_a_slice_of_text_is_read_from_its_own_bytes(column, cells, type_, monkeypatch):
    """With every version of Arrow: what other rows hold must not matter."""
    whole = encoded(column, pa.array(cells).cast(type_), untyped=True)
    monkeypatch.setattr(pc, "if_else", old_if_else)
    for before in ("", "somebody else's cell, of any length"):
        held = pa.array([before, *cells, "after"]).cast(type_)
        assert encoded(column, held.slice(1, len(cells)), untyped=True).tolist() == whole.tolist()
        assert encoded(column, held.slice(4, len(cells) - 3), untyped=True).tolist() == whole[:, 3:].tolist()


def test_undeclared_values_are_missing_cells_without_an_other_level():
    column = Categorical("c", ["a", "b"], missing="level")
    assert encoded(column, ["a", "?", None]).tolist() == [[0, 0, 0], [0, 1, 1]]


def test_levels_by_number_match_however_they_are_written():
    column = Categorical("c", [0, 1, 2], other=True)
    expected = [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert encoded(column, pa.array([0, 1, 2, 7, None])).tolist() == expected
    assert encoded(column, pa.array([-0.0, 1.0, 2.0, 1.5, np.nan])).tolist() == expected
    assert encoded(column, [b"0", b" 1.0", b"2e0", b"7", b"x"], untyped=True).tolist() == expected


def test_a_column_may_have_one_level():
    for level, cells in (("a", ["a", "b", None]), (7, [7.0, 8.0, None])):
        found = encoded(Categorical("x", [level], other=True, missing="level"), pa.array(cells))
        assert found.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_integers_and_truth_values_match_text_categories():
    assert encoded(Categorical("c", ["1", "2"]), pa.array([1, 2, 3])).tolist() == [[0, 1, 0]]
    assert encoded(Categorical("c", ["false", "true"]), pa.array([True, False])).tolist() == [[1, 0]]
    # pandas makes floats of integers when a cell is missing
    column = Categorical("c", ["1", "2"], other=True, missing="level")
    cells = pa.array([1.0, 2.0, 2.5, np.nan, np.inf, None])
    assert encoded(column, cells).tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]


def test_truth_values_are_numbers_too():
    """pandas makes objects of truth values when a cell is missing, so both must be taken."""
    assert encoded(Numeric("x", 0, 2), pa.array([True, False, None])).tolist() == [[0, -1, 0]]
    assert encoded(Numeric("x", 0, 2), [b"True", b"false", None], untyped=True).tolist() == [[0, -1, 0]]


def lying_string(cells: list[bytes]) -> pa.Array:
    """A column declared as UTF-8 that is not, as some writers make them."""
    honest = pa.array(cells, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(cells), honest.buffers())


def test_declared_strings_are_checked():
    column = Categorical("c", ["a", "b"], other=True, missing="level")
    cells = lying_string([b"a", b"b", b"\xff\xfe", b"z"])
    assert encoded(column, cells).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert encoded(column, pa.DictionaryArray.from_arrays([0, 1, 2, 3], cells)).tolist() == encoded(column, cells).tolist()


def test_bytes_that_are_not_utf8_are_missing_levels():
    column = Categorical("c", ["a", "é"], other=True, missing="level")
    cells = ["é".encode(), b"\xe9", b"a", b"\xed\xa0\x80"]
    assert encoded(column, cells, untyped=True).tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("cells", "untyped"),
    [
        (pa.array([True, False, None]), False),
        (pa.array([1, 0, 2]), False),
        (pa.array([1.0, 0.0, 0.5]), False),
        ([b"Yes", b" n ", b"maybe"], True),
        ([b"TRUE", b"0.0", b""], True),
        ([b"t", b"F", b"\xff"], True),
        ([b"1.00", b"-0", b"3"], True),
        (pa.array([Decimal("1.00"), Decimal("0.00"), Decimal("0.50")], pa.decimal128(9, 2)), False),
    ],
)
def test_truth_values(cells, untyped):
    assert encoded(Boolean("b"), cells, untyped=untyped).tolist() == [[1, 0, 0]]
    assert encoded(Boolean("b", missing=True), cells, untyped=untyped).tolist() == [[1, 0, 1]]


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (Numeric("x", 0, 1), pa.string()),
        (Numeric("x", 0, 1), pa.timestamp("s")),
        (Numeric("x", 0, 1), pa.binary()),
        (Numeric("x", 0, 1), pa.list_(pa.float64())),
        (Boolean("x"), pa.string()),
        (Categorical("x", ["a", "b"]), pa.list_(pa.string())),
        (Categorical("x", [1, 2]), pa.string()),
        (Categorical("x", ["a", "b"]), pa.date32()),
    ],
)
def test_a_wrong_declared_type_is_an_error(column, type_):
    with pytest.raises(ColumnTypeError, match=f"column 'x' is declared {column.kind}, but the table holds"):
        encoded(column, pa.array([], type_))


NUMBERS = [b"1", b"-0", b"+1", b"1.", b".5", b"1e5", b"1E-5", b" 1 ", b"\t2\n", b"1e-400", b"0." + b"1" * 900]
OTHERS = [
    b"",
    b"1e",
    b"e1",
    b"nan",
    b"-inf",
    b"Infinity",
    b"1e400",
    b"0x10",
    b"1_0",
    b"1,0",
    b"\xff1",
    b"1\x00",
    b"\xef\xbc\x91",
]


@pytest.mark.parametrize("cell", [*NUMBERS, *OTHERS, b"true", b"FALSE"])
def test_a_number_in_text_does_not_depend_on_the_cells_beside_it(cell):
    """Numbers alone are cast at once, others with care: one cell must not change what another becomes."""
    alone = as_numbers(pa.array([cell], pa.binary()))
    beside = as_numbers(pa.array([cell, b"no number"], pa.binary()))[:1]
    np.testing.assert_array_equal(alone, beside)
