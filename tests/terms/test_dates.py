"""Dates as declared, and their parts against Python's calendar."""

import datetime
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dpgram import Date, Log, Log1p, Numeric, Schema
from dpgram.encoding.derive import date_part
from dpgram.errors import SchemaError
from dpgram.terms.dates import PARTS, days_of_seconds, part_range
from dpgram.terms.elementary import log, log1p, power

EPOCH = datetime.datetime(1970, 1, 1)
MOMENTS = st.datetimes().map(lambda m: m.replace(microsecond=0))
IN_PYTHON = {
    "year": lambda m: m.year,
    "quarter": lambda m: (m.month + 2) // 3,
    "month": lambda m: m.month,
    "day_of_year": lambda m: m.timetuple().tm_yday,
    "day": lambda m: m.day,
    "weekday": lambda m: m.isoweekday(),
    "hour": lambda m: m.hour,
}


def days(*moments):
    return days_of_seconds(np.array([(m - EPOCH) // datetime.timedelta(seconds=1) for m in moments]))


@given(st.lists(MOMENTS, min_size=1, max_size=5))
def test_parts_are_those_of_the_calendar(moments):
    assert set(IN_PYTHON) == set(PARTS)
    for part, in_python in IN_PYTHON.items():
        assert date_part(days(*moments), part).tolist() == [in_python(m) for m in moments]


@pytest.mark.parametrize("part", PARTS)
def test_every_hour_of_a_leap_year_and_its_edges(part):
    moments = [datetime.datetime(2012, 1, 1) + datetime.timedelta(hours=h) for h in range(366 * 24 + 24)]
    moments += [m - datetime.timedelta(seconds=1) for m in moments]
    assert date_part(days(*moments), part).tolist() == [IN_PYTHON[part](m) for m in moments]


def test_a_missing_date_has_missing_parts():
    assert np.isnan([date_part(np.array([np.nan]), part) for part in PARTS]).all()


@given(MOMENTS, MOMENTS, st.lists(st.floats(0, 1), min_size=1, max_size=20), st.booleans())
def test_the_range_of_a_part_holds_every_date_between(one, other, fractions, near):
    first, last = sorted([one, other])
    if near:
        last = min(last, first + datetime.timedelta(days=20)) if first.year < 9999 else last
    low, high = days(first, last)
    seconds = int((last - first).total_seconds())
    between = days(*(first + datetime.timedelta(seconds=int(f * seconds)) for f in fractions))
    for part in PARTS:
        smallest, largest = part_range(part, low, high)
        found = date_part(np.array([*between, low, high]), part)
        assert (smallest <= found).all()
        assert (found <= largest).all()


def test_narrow_bounds_make_narrow_ranges():
    def spring(part):
        return part_range(part, *days(datetime.datetime(2013, 3, 5), datetime.datetime(2013, 5, 2, 7)))

    assert [spring(part) for part in ("year", "month", "quarter", "day")] == [(2013, 2013), (3, 5), (1, 2), (1, 31)]


@pytest.mark.parametrize(
    "lower",
    [
        "2013-01-31T06:00:00",
        "2013-01-31 06:00",
        "2013-01-31T07:00:00+01:00",
        datetime.datetime(2013, 1, 31, 6),
        datetime.datetime(2013, 1, 31, 6, tzinfo=datetime.UTC),
        np.datetime64("2013-01-31T06:00", "ns"),
    ],
)
def test_bounds_are_kept_as_text_in_utc(lower):
    column = Date("d", lower, datetime.date(2013, 2, 1))
    assert (column.lower, column.upper) == ("2013-01-31T06:00:00", "2013-02-01")
    assert (column.first, column.last, column.fill) == (15736.25, 15737.0, 15736.625)
    assert Date("d", lower, "2013-02-01", missing=column.upper).fill == column.last


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (("", "2013-01-01"), "column 'd': lower is blank"),
        (("2013-01-01", None), "upper is blank"),
        (("2013-02-30", "2014-01-01"), "lower is '2013-02-30' and must be a date or a time"),
        ((2013, "2014-01-01"), "lower is 2013 and must be a date or a time"),
        (("2013-01-01T00:00:00.5", "2014-01-01"), "must be in whole seconds"),
        (("2014-01-01", "2013-01-01"), "lower is 2014-01-01 and upper is 2013-01-01, but upper must be at least an hour later"),
        (("0001-01-01T00:00+14:00", "2013-01-01"), "must be a date or a time"),
        (("2013-01-01", "2014-01-01", "2015-01-01"), r"missing is 2015-01-01 and must lie within \[2013-01-01, 2014-01-01\]"),
        (("2013-01-01", "2014-01-01", "mean"), "missing is 'mean' and must be a date"),
    ],
)
def test_bad_bounds_are_named(bounds, message):
    with pytest.raises(SchemaError, match=message):
        Date("d", *bounds)


@given(st.floats(min_value=-1, max_value=1e300, exclude_min=True))
def test_log1p_is_right_to_four_units_in_the_last_place(x):
    with mpmath.workprec(200):
        true = mpmath.log1p(mpmath.mpf(x))
        assert abs(mpmath.mpf(float(log1p(np.array([x]))[0])) - true) <= 4 * math.ulp(float(true))


@given(st.floats(min_value=0, max_value=1e300, exclude_min=True))
@example(5e-324)
@example(0.7071067811865475)
@example(math.nextafter(1, 0))
@example(1.0)
@example(math.nextafter(1, 2))
def test_log_is_right_to_four_units_in_the_last_place(x):
    with mpmath.workprec(200):
        true = mpmath.log(mpmath.mpf(x))
        assert abs(mpmath.mpf(float(log(np.array([x]))[0])) - true) <= 4 * math.ulp(float(true))


def test_a_missing_cell_has_no_logarithm():
    assert np.isnan(log(np.array([np.nan, 1.0]))).tolist() == [True, False]


@given(st.floats(1e-300, 1e300), st.floats(1e-3, 1e300))
def test_a_bound_of_log_has_the_bits_of_a_cell_there(lower, width):
    assume(lower + width < 1e300 and width > 1e-8 * lower)
    schema = Schema(unit="p", columns=[Numeric("x", lower, lower + width)], derived=[Log("d", of="x")])
    ends = log(np.array([lower, lower + width])).tolist()
    assert (schema.made["d"].lower, schema.made["d"].upper) == tuple(ends)


@given(st.floats(-0.999, 1e300), st.floats(1e-3, 1e300))
def test_a_bound_of_log1p_has_the_bits_of_a_cell_there(lower, width):
    """Bounds are declared one number at a time, cells are computed many at a time."""
    assume(lower + width < 1e300 and width > 1e-8 * abs(lower))
    schema = Schema(unit="p", columns=[Numeric("x", lower, lower + width)], derived=[Log1p("d", of="x")])
    ends = log1p(np.array([lower, lower + width])).tolist()
    assert (schema.made["d"].lower, schema.made["d"].upper) == tuple(ends)


@given(st.floats(-1e30, 1e30), st.integers(1, 9))
def test_powers_are_repeated_products(x, exponent):
    by_hand = 1.0
    for _ in range(exponent):
        by_hand *= x
    assert power(np.array([x]), exponent)[0] == by_hand
