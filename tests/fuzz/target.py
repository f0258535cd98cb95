"""What every fuzzer asserts, and the schema under which it reads: a whole, bounded sum, or one of our errors that tells nothing.

The path is the real one: source, encoder, clip, sum, by both kernels. Nothing here needs more than dpgram itself, so that the fuzzer
of files, which runs by itself, and the tests share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from unittest import mock

import numpy as np

import dpgram
from dpgram.engines import summing
from dpgram.engines.local import LocalPass
from dpgram.engines.summing import summing_for
from dpgram.errors import ColumnTypeError, DpgramError, MissingColumnError
from dpgram.native.library import kernel
from dpgram.rows.clip import largest_square
from dpgram.rows.gram_sum import LIMB_BITS, GramSum
from dpgram.sources.base import Source
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap, digest_of
from dpgram.terms.schema import Schema

CANARY, NUMBER = "CANARY-SMITH", 8675309.25  # cells of the tables that are mutated; no message may repeat them
MOST_ALONE = 12  # rows of a table whose rows are also summed one by one

COLUMNS = [
    dpgram.Numeric("x", -5, 5),
    dpgram.Numeric("n", 0, 1e6, missing=0),
    dpgram.Categorical("c", ["a", "b"], other=True, missing="level"),
    dpgram.Categorical("k", [1, 2, 3], other=True),
    dpgram.Boolean("b", missing=True),
    dpgram.Date("d", "2013-01-01", "2014-01-01", missing="midpoint"),
]
PLAIN = Schema(unit="p", neighbours="add-remove", columns=COLUMNS, row_bound=1.5)  # a bound that most rows break
DERIVED = Schema(
    unit="p",
    neighbours="add-remove",
    columns=COLUMNS,
    derived=[
        dpgram.Product("xc", of=("x", "c")),
        dpgram.Power("x3", of="x", exponent=3),
        dpgram.Log1p("ln", of="n"),
        dpgram.Interval("high", of="n", lower=500),
        dpgram.DatePart("month", of="d", part="month", levels=True),
    ],
)
SCHEMAS = (PLAIN, DERIVED)


@contextmanager
def without_kernel() -> Iterator[None]:
    """Within it NumPy sums, as with DPGRAM_KERNEL=numpy."""
    with mock.patch.object(summing, "kernel", return_value=None):
        yield


@contextmanager
def with_kernel() -> Iterator[None]:
    yield


def kernels() -> tuple:
    """Every way to sum that this installation has."""
    return (without_kernel,) if kernel() is None else (with_kernel, without_kernel)


def integers(total: GramSum) -> np.ndarray:
    """The sum in grid units, as Python's whole numbers."""
    return total.high.astype(object) * 2**LIMB_BITS + total.low.astype(object)


def assert_bounded(total: GramSum) -> None:
    """No row can have brought more than its bound, and the whole can be a sum of squares. All in whole numbers but the last."""
    gram = integers(total)
    assert total.high.dtype == total.low.dtype == np.int64
    assert (gram == gram.T).all()
    diagonal = np.diagonal(gram)
    assert (diagonal >= 0).all()
    assert diagonal.sum() <= total.rows * largest_square(total.row_bound)
    assert (gram * gram <= np.outer(diagonal, diagonal)).all()  # Cauchy and Schwarz
    scaled = total.in_scaled_units()
    assert np.isfinite(scaled).all()
    assert np.linalg.eigvalsh(scaled)[0] >= -1e-9 * max(1.0, float(np.trace(scaled)))


def assert_tells_nothing(error: DpgramError, where: str) -> None:
    """The error repeats no cell, holds no number and drags no other exception along. Names and types are public."""
    assert error.__cause__ is None
    assert error.__context__ is None
    said = str(error).replace(where, "")
    assert CANARY not in said
    assert "8675309" not in said
    if not isinstance(error, ColumnTypeError | MissingColumnError):
        assert not re.search(r"[0-9]", said.replace("UTF-8", "")), said


def check_table(
    make: Callable[[], object], schema: Schema, *, where: str = "", alone: bool = True, **options: object
) -> GramSum | None:
    """The sum over the table that ``make`` makes, after every assertion of this module; None if it was refused.

    Both kernels must refuse or give the same sum. With ``alone``, each row of a small table is also summed by itself: it is bounded, and
    together they are the whole, so that no row decides what another becomes. And it is bounded through a public map."""
    totals = []
    for way in kernels():
        with way():
            try:
                source = open_source(make(), **options)
                totals.append(LocalPass(source, schema, threads=1).gram(schema.effective_row_bound))
            except DpgramError as error:
                assert_tells_nothing(error, where)
                totals.append(None)
    total = totals[0]
    assert all((other is None) == (total is None) for other in totals)
    if total is None:
        return None
    assert_bounded(total)
    for other in totals[1:]:
        assert other.rows == total.rows
        assert (integers(other) == integers(total)).all()
    if alone and total.rows <= MOST_ALONE:
        through = _map_of(len(schema.encoded))
        mapped = []
        for way in kernels():
            with way():
                assert (integers(_row_by_row(open_source(make(), **options), schema)) == integers(total)).all()
                mapped.append(_row_by_row(open_source(make(), **options), schema, 1.0, through))
        for other in mapped:
            assert_bounded(other)
            assert (integers(other) == integers(mapped[0])).all()
    return total


@cache
def _map_of(dim: int) -> PublicMap:
    """Rows of many sizes, so that some mapped rows are longer than one and others are not."""
    rng = np.random.default_rng(dim)
    return PublicMap.near(rng.normal(size=(dim, dim)) * 10.0 ** rng.integers(-8, 3, (dim, 1)))


def _row_by_row(source: Source, schema: Schema, bound: float | None = None, through: PublicMap | None = None) -> GramSum:
    bound = schema.effective_row_bound if bound is None else bound
    total = GramSum.zero(len(schema.encoded), bound, digest_of(through))
    for batch, _ in source.pieces(schema.names):
        for row in range(batch.num_rows):
            alone = summing_for(schema, bound, through, untyped=source.untyped)
            alone.add(batch.slice(row, 1))
            assert np.trace(integers(alone.total())) <= largest_square(bound)
            total = total.merge(alone.total())
    return total
