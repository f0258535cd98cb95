"""Arrow types: which of them each kind of column takes, and what counts as text. Types are public, so a wrong one is an error."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dpgram.errors import ColumnTypeError
from dpgram.terms.columns import Boolean, Categorical, Column, Date, Numeric

CONVERT = "convert it in the source"


def check_type(column: Column, given: pa.DataType) -> None:
    """Raise unless ``column``'s kind can take cells of the type ``given``."""
    inner = given.value_type if pt.is_dictionary(given) else given
    if pt.is_null(inner):  # a column without a single value: all of it is missing
        return
    match column:
        case Numeric():
            taken, needed = is_number(inner) or pt.is_boolean(inner), "a type of numbers"
        case Boolean():
            taken, needed = pt.is_boolean(inner) or is_number(inner), "true and false, or 0 and 1"
        case Date():
            taken, needed = is_date(inner), "a type of dates or timestamps"
        case Categorical() if column.matches_numbers:
            taken, needed = is_number(inner), "a type of numbers (its categories are integers)"
        case Categorical():
            taken = is_text(inner) or is_number(inner) or pt.is_boolean(inner)
            needed = "a type of text, numbers or truth values"
    if not taken:
        raise ColumnTypeError(
            column=column.name, kind=column.kind, found=str(given), needed=needed, do=f"{CONVERT}, or declare another kind"
        )


def check_weight_type(name: str, given: pa.DataType) -> None:
    """Raise unless cells of the type ``given`` can be weights: the kind numeric takes the same."""
    inner = given.value_type if pt.is_dictionary(given) else given
    if not (is_number(inner) or pt.is_boolean(inner) or pt.is_null(inner)):
        raise ColumnTypeError(column=name, kind="weight", found=str(given), needed="a type of numbers", do=CONVERT)


DIGITS = 76  # of the largest whole number that Arrow can hold


def check_id_type(name: str, given: pa.DataType) -> None:
    """Raise unless cells of the type ``given`` can be ids of units: two cells are then the same id exactly where they are equal."""
    inner = given.value_type if pt.is_dictionary(given) else given
    whole = (
        pt.is_integer(inner)
        or pt.is_floating(inner)
        or (pt.is_decimal(inner) and inner.scale <= 0 and inner.precision - inner.scale <= DIGITS)
    )
    if not (whole or is_text(inner) or pt.is_null(inner)):
        needed = "a type of text or of whole numbers"
        raise ColumnTypeError(column=name, kind="unit_id", found=str(given), needed=needed, do=CONVERT)


def likely_kind(given: pa.DataType) -> str:
    """The kind that a declared type suggests; one that no kind takes comes back as "!" and the reason."""
    inner = given.value_type if pt.is_dictionary(given) else given
    if pt.is_boolean(inner):
        return "boolean"
    if is_text(inner):
        return "categorical"
    if is_number(inner) or pt.is_null(inner):
        return "numeric"
    if is_date(inner):
        return "date"
    return f"!its type {given} is not supported. Convert it to numbers, text, truth values or dates first"


def is_number(type_: pa.DataType) -> bool:
    return pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_)


def is_date(type_: pa.DataType) -> bool:
    return pt.is_date(type_) or pt.is_timestamp(type_)


def is_text(type_: pa.DataType) -> bool:
    """Text, or bytes that may be text."""
    text = pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_)
    return (
        text or pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_binary_view(type_) or pt.is_fixed_size_binary(type_)
    )


def as_bytes(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The bytes of text, unchecked: files may lie, and what is not UTF-8 is a missing cell."""
    plain = cells if pt.is_large_string(cells.type) or pt.is_large_binary(cells.type) else cells.cast(pa.binary())
    return plain.cast(pa.large_binary())


def null_where(missing: pa.Array, text: pa.Array) -> pa.Array:
    """Text or bytes, null where they are ``missing``.

    Before version 24, Arrow's if_else with a null reads beyond a slice's bytes: what a row's cell holds would depend on the rows before it
    (apache/arrow#49410). Joined to nothing, a slice becomes an array that starts with its first byte, which costs far less than a cast."""
    return pc.if_else(missing, None, pa.concat_arrays([text]))
