"""Whatever is derived and whatever the cells hold: entries and norms keep their bounds, and each row stands alone."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dpgram import Boolean, Categorical, Date, DatePart, Interval, Log, Log1p, Numeric, Power, Product, Schema
from dpgram.encoding.columns import untyped_array
from dpgram.encoding.encode import Encoder
from dpgram.errors import SchemaError
from dpgram.rows.clip import GRID, clip, largest_square
from dpgram.terms.dates import PARTS

NUMBERS = ("x", "y", "z")
FACTORS = (*NUMBERS, "b", "c", "k", "c[p]", "c[q]", "k[2]", "when")


@st.composite
def numeric(draw, name):
    lower = draw(st.one_of(st.floats(-1e6, 1e6), st.floats(-1e20, 1e20), st.sampled_from([0.0, -1.0, -0.5, 1.0])))
    width = draw(st.one_of(st.floats(1e-3, 1e6), st.floats(1, 1e20)))
    assume(width > 1e-8 * abs(lower))
    return Numeric(name, lower, lower + width)


@st.composite
def dates(draw):
    lower = draw(st.datetimes(max_value=datetime.datetime(9000, 1, 1))).replace(microsecond=0)
    hours = draw(st.one_of(st.integers(1, 100), st.integers(1, 10**6)))
    return Date("when", lower, lower + datetime.timedelta(hours=hours))


def one_derived(name):
    of = st.sampled_from((*NUMBERS, "when"))
    ends = st.one_of(st.none(), st.floats(-1e6, 1e6))
    return st.one_of(
        st.builds(Product, st.just(name), st.tuples(st.sampled_from(FACTORS), st.sampled_from(FACTORS))),
        st.builds(Power, st.just(name), of, st.integers(2, 9)),
        st.builds(Log, st.just(name), of),
        st.builds(Log1p, st.just(name), of),
        st.builds(
            lambda o, low, high, m: Interval(name, o, 0.0 if low is high else low, high, m), of, ends, ends, st.booleans()
        ),
        st.builds(
            lambda part, missing: DatePart(name, "when", part, levels=True, missing=missing),
            st.sampled_from([*PARTS]),
            st.sampled_from(["reference", "level"]),
        ),
        st.builds(DatePart, st.just(name), st.just("when"), st.sampled_from([*PARTS])),
    )


@st.composite
def schemas(draw):
    """Columns of every kind, and up to five derived ones that the schema does not refuse."""
    columns = [draw(numeric(name)) for name in NUMBERS]
    columns.append(Boolean("b", missing=draw(st.booleans())))
    columns.append(Categorical("c", ["p", "q", "r"], other=draw(st.booleans())))
    columns.append(Categorical("k", [1, 2, 3], missing="level"))
    columns.append(draw(dates()))
    intercept, kept = draw(st.booleans()), []
    for i in range(draw(st.integers(1, 5))):
        try:
            derived = draw(one_derived(f"d{i}"))
            Schema(unit="p", columns=columns, derived=[derived])
        except SchemaError:
            continue
        if isinstance(derived, DatePart) and derived.levels and len(derived.made({c.name: c for c in columns}).names) > 400:
            continue
        kept.append(derived)
    return Schema(unit="p", columns=columns, derived=kept, intercept=intercept)


CELLS = st.one_of(
    st.none(), st.text(max_size=6), st.binary(max_size=6), st.booleans(), st.integers(), st.floats(), st.decimals(), st.dates(),
    st.datetimes(), st.sampled_from(["p", "q", "r", 1, 2, 3, 0, 1e308, -1e308, 5e-324, "nan", "-inf", b"\xff", Decimal("sNaN"), [1],
    "2013-01-01", "0001-01-01", "9999-12-31T23:59:59", datetime.date.max, math.inf, -math.inf, math.nan, -0.0, 10**400]),
)  # fmt: skip
NAMES = (*NUMBERS, "b", "c", "k", "when")
ROWS = st.lists(st.tuples(*[CELLS] * len(NAMES)), min_size=1, max_size=6)


def batch(rows):
    return pa.record_batch({name: untyped_array([row[i] for row in rows]) for i, name in enumerate(NAMES)})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schema=schemas(), rows=ROWS, bound=st.floats(2**-10, 4))
def test_bounds_hold_and_no_row_decides_what_another_becomes(schema, rows, bound):
    encoder = Encoder(schema, untyped=frozenset(NAMES))
    together = encoder.encode(batch(rows))
    assert (np.abs(together) <= 1).all()
    for place, row in enumerate(rows):
        assert np.array_equal(encoder.encode(batch([row]))[:, 0], together[:, place])
    most = schema.intercept + len(schema.columns) + len(schema.derived)
    assert max(sum(Fraction(z) ** 2 for z in row) for row in together.T.tolist()) <= most
    assert Fraction(schema.effective_row_bound) ** 2 >= most
    for derived in schema.derived:  # several encoded columns add no more than one would
        own = [i for i, e in enumerate(schema.encoded) if e.column == derived.name]
        assert len(own) == 1 or (np.count_nonzero(together[own], axis=0) <= 1).all()
    untouched = clip(together, schema.effective_row_bound)
    assert np.array_equal(untouched.points, np.trunc(together * GRID))  # the default bound shrinks no row
    for row in clip(together, bound).points.T:
        assert sum(int(q) ** 2 for q in row) <= largest_square(bound)


@st.composite
def extremes(draw, schema):
    """A row whose cells sit on the edges of what is declared: where norms are largest."""
    row = []
    for column in schema.columns:
        match column:
            case Numeric():
                row.append(draw(st.sampled_from([column.lower, column.upper, 0.0, -1e300, 1e300])))
            case Date():
                row.append(draw(st.sampled_from([column.lower, column.upper])))
            case Boolean():
                row.append(True)
            case Categorical():
                row.append(draw(st.sampled_from([*column.categories, None])))
    return tuple(row)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schema=schemas(), data=st.data())
def test_the_largest_rows_keep_the_bound(schema, data):
    rows = data.draw(st.lists(extremes(schema), min_size=1, max_size=6))
    encoded = Encoder(schema, untyped=frozenset(NAMES)).encode(batch(rows))
    most = schema.intercept + len(schema.columns) + len(schema.derived)
    assert (np.abs(encoded) <= 1).all()
    assert max(sum(Fraction(z) ** 2 for z in row) for row in encoded.T.tolist()) <= most


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schema=schemas())
def test_schemas_read_back_equal(schema):
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(schema.to_dict()).encoded == schema.encoded


def test_the_bound_is_attained():
    """No smaller default would do: a row with every column at its edge has this norm."""
    schema = Schema(
        unit="p",
        columns=[Numeric("x", -2, 3), Numeric("y", 1, 5), Categorical("c", ["p", "q"])],
        derived=[
            Product("xy", of=("x", "y")),
            Product("xc", of=("x", "c")),
            Power("x3", of="x", exponent=3),
            Log("ly", of="y"),
            Log1p("ly1", of="y"),
            Interval("i", of="x", lower=1),
        ],
    )
    out = Encoder(schema).encode(pa.record_batch({"x": [99.0], "y": [99.0], "c": ["q"]}))
    assert np.abs(out).min() == 1
    assert math.isclose(schema.effective_row_bound**2, len(out), rel_tol=1e-15)
