"""What may be derived, the bounds that follow, and what each mistake is called."""

import copy
import datetime
import pickle
import tomllib
from fractions import Fraction

import numpy as np
import pytest

from dpgram import Boolean, Categorical, Date, DatePart, Interval, Log, Log1p, Numeric, Power, Product, Schema
from dpgram.errors import SchemaError

COLUMNS = [
    Numeric("x", -2, 3),
    Numeric("y", 1, 5),
    Numeric("huge", -1e300, 1e300),
    Boolean("b"),
    Categorical("c", ["p", "q", "r"], other=True),
    Categorical("k", [1, 2], missing="level"),
    Date("when", "2013-01-01", "2014-07-01"),
]


def schema(*derived, **changes) -> Schema:
    return Schema(**{"unit": "p", "columns": COLUMNS, "derived": derived, **changes})


def made(derived):
    return schema(derived).made[derived.name]


@pytest.mark.parametrize(
    ("derived", "bounds"),
    [
        (Product("d", of=("x", "y")), (-10, 15)),
        (Product("d", of=("y", "when")), (15706, 5 * 16252)),
        (Power("d", of="x", exponent=2), (0, 9)),
        (Power("d", of="x", exponent=3), (-8, 27)),
        (Power("d", of="y", exponent=4), (1, 625)),
        (Log("d", of="y"), (0, np.log(5))),
        (Log("d", of="when"), (np.log(15706), np.log(16252))),
        (Log1p("d", of="y"), (np.log(2), np.log(6))),
        (DatePart("d", of="when", part="year"), (2013, 2014)),
        (DatePart("d", of="when", part="month"), (1, 12)),
        (DatePart("d", of="when", part="weekday"), (1, 7)),
        (DatePart("d", of="when", part="hour"), (0, 23)),
    ],
)
def test_bounds_of_numbers_follow_from_the_parents(derived, bounds):
    found = made(derived)
    assert (found.lower, found.upper) == pytest.approx(bounds, rel=1e-15)
    assert found.is_number
    encoded = schema(derived).encoded[-1]
    assert (encoded.name, encoded.column) == ("d", "d")
    assert (encoded.centre, encoded.half) == pytest.approx((sum(bounds) / 2, (bounds[1] - bounds[0]) / 2), rel=1e-12)


def test_a_negative_range_to_an_even_power():
    two = Schema(unit="p", columns=[Numeric("x", -3, -1)], derived=[Power("d", of="x")])
    assert (two.made["d"].lower, two.made["d"].upper) == (1, 9)


@pytest.mark.parametrize(
    ("derived", "names", "half"),
    [
        (Product("d", of=("x", "b")), ("d",), 3),
        (Product("d", of=("c[q]", "y")), ("d",), 5),
        (Product("d", of=("c[p]", "b")), ("d",), 1),
        (Product("d", of=("c", "x")), ("d[q]", "d[r]", "d[other]"), 3),
        (Product("d", of=("b", "k")), ("d[2]", "d[missing]"), 1),
        (Product("d", of=("c", "k[missing]")), ("d[q]", "d[r]", "d[other]"), 1),
        (
            Product("d", of=("k", "c")),
            ("d[2:q]", "d[2:r]", "d[2:other]", "d[missing:q]", "d[missing:r]", "d[missing:other]"),
            1,
        ),
        (Interval("d", of="x", lower=0), ("d",), 1),
        (DatePart("d", of="when", part="quarter", levels=True), ("d[2]", "d[3]", "d[4]"), 1),
        (DatePart("d", of="when", part="year", levels=True, missing="level"), ("d[2014]", "d[missing]"), 1),
    ],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_products_with_levels_are_scaled_about_zero(derived, names, half, intercept):
    """Shifted, every column of a group would differ from zero, and the group would add more than 1 to the squared norm."""
    encoded = [e for e in schema(derived, intercept=intercept).encoded if e.column == "d"]
    assert tuple(e.name for e in encoded) == names
    assert all((e.centre, e.half) == (0, half) for e in encoded)


def test_each_derived_column_counts_once_in_the_row_bound():
    derived = [Product("d", of=("x", "c")), Power("e", of="x"), DatePart("f", of="when", part="month", levels=True)]
    assert Fraction(schema(*derived).effective_row_bound) ** 2 >= 1 + len(COLUMNS) + 3
    assert schema(*derived).effective_row_bound ** 2 == pytest.approx(1 + len(COLUMNS) + 3)
    assert schema(*derived, row_bound=2.0).effective_row_bound == 2.0


def test_names_and_sources():
    both = schema(Product("d", of=("x", "c")))
    assert both.names == tuple(c.name for c in COLUMNS)  # what is read from the table
    assert both.all_names == (*both.names, "d")
    assert both.encoded[-1].sources == {"x", "c"}
    assert both.encoded[1].sources == {"x"}
    assert both.encoded[0].sources == frozenset()


def of_x(kind, **fields):
    return {"name": "d", "kind": kind, "of": "x", **fields}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "power"}, "derived column number 1 has no name"),
        ({"name": "d"}, "derived column 'd': kind is blank and must be one of product, power, log, log1p, interval, date-part"),
        (of_x("square"), "kind is 'square' and must be one of product"),
        (of_x("power", exponnent=2), r"derived column 'd' \(power\) has an unknown key 'exponnent'"),
        ({"name": "d", "kind": "power"}, "derived column 'd': of is blank"),
        (of_x("power", exponent=1), "exponent is 1 and must be a whole number from 2 to 9"),
        (of_x("power", exponent=2.0), "exponent is 2.0 and must be a whole number"),
        (of_x("power", exponent=True), "exponent is True and must be"),
        (of_x("power", missing=10), r"missing is 10 and must lie within \[0, 9\]"),
        ({"name": "d", "kind": "power", "of": "b"}, "'b' is boolean, but a numeric or date column is needed"),
        ({"name": "d", "kind": "power", "of": "z"}, r"'z' is not a declared column. A derived column can use only"),
        ({"name": "d", "kind": "power", "of": ["x"]}, "is not a declared column"),
        ({"name": "d", "kind": "power", "of": "huge"}, "which double precision cannot hold. Rescale those columns"),
        (of_x("log"), r"the lower bound of 'x' is -2, but log\(x\) needs one above 0\."),
        (of_x("log", missing=9) | {"of": "y"}, r"missing is 9 and must lie within \[0, 1\.6"),
        (of_x("log1p"), "the lower bound of 'x' is -2, but log.1 . x. needs one above -1"),
        (of_x("product"), "of is 'x' and must name two columns"),
        (of_x("product") | {"of": ["x", "y", "b"]}, "must name two columns"),
        (of_x("product") | {"of": ["x", "x"]}, "both factors come from column 'x'. Use a power"),
        (of_x("product") | {"of": ["c", "c[q]"]}, "both factors come from column 'c'. Such a product adds no information"),
        (of_x("product") | {"of": ["b", "b"]}, "adds no information"),
        (of_x("product") | {"of": ["x", "c[z]"]}, r"'c\[z\]' is not a declared column"),
        (of_x("product") | {"of": ["x", "b"], "missing": 1}, "missing is 1, but a factor is a level or a truth value"),
        (of_x("product") | {"of": ["x", "y"], "missing": "mean"}, 'must be "midpoint" or a number'),
        (of_x("product") | {"of": ["huge", "y"], "missing": 0}, "too large"),
        (of_x("interval"), "lower and upper are both left out"),
        (of_x("interval", lower=1, upper=1), "lower is 1.0 and upper is 1.0, but lower must be smaller"),
        (of_x("interval", lower=4), r"every value of 'x' within its bounds \[-2.0, 3.0\] gives the same"),
        (of_x("interval", upper=-2), "gives the same result"),
        (of_x("interval", lower=-9, upper=9), "gives the same result"),
        (of_x("interval", lower=float("nan")), "lower is nan and must be finite"),
        (of_x("interval", lower=True), "lower is True and must be a date or a time"),
        (of_x("interval", lower=""), "lower is blank"),
        (of_x("interval", lower="2013-01-01"), "lower is '2013-01-01' and must be a number, because 'x' is a numeric column"),
        (of_x("interval", lower=1) | {"of": "when"}, "lower is 1.0 and must be a date, because 'when' is a date column"),
        (of_x("interval", lower=1, missing=0), "missing is 0 and must be true or false"),
        (of_x("date-part", part="year"), "'x' is numeric, but a date column is needed"),
        (of_x("date-part", part="minute") | {"of": "when"}, "part is 'minute' and must be one of year, quarter"),
        (of_x("date-part", part="month", levels=1) | {"of": "when"}, "levels is 1 and must be true or false"),
        (of_x("date-part", part="month", missing=13) | {"of": "when"}, r"missing is 13 and must lie within \[1, 12\]"),
        (of_x("date-part", part="month", levels=True, missing=3) | {"of": "when"}, 'must be "reference" or "level"'),
        (of_x("power") | {"name": "x"}, "column 'x' is declared twice"),
        (of_x("interval", lower=1) | {"name": "c[q]"}, r"encoded column 'c\[q\]' is declared twice"),
    ],
)  # fmt: skip
def test_mistakes_are_named(fields, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**schema().to_dict(), "derived": [fields]})


def test_derived_columns_cannot_be_derived_from():
    with pytest.raises(SchemaError, match="'d' is not a declared column"):
        schema(Power("d", of="x"), Power("e", of="d"))


def test_other_things_are_refused():
    with pytest.raises(
        SchemaError, match="derived contains a Numeric, but each entry must be Product, Power, Log, Log1p, Interval or DatePart"
    ):
        schema(Numeric("d", 0, 1))
    with pytest.raises(SchemaError, match="columns contains a Power"):
        schema(columns=[Power("d", of="x")])
    with pytest.raises(SchemaError, match="derived must be a list of Product"):
        schema(derived=Power("d", of="x"))
    with pytest.raises(SchemaError, match=r"Write each derived column under \[\[derived\]\]"):
        Schema.from_dict({**schema().to_dict(), "derived": {"name": "d"}})


def test_too_many_pairs_are_refused_before_they_are_named():
    columns = [Categorical(name, [f"{name}{i}" for i in range(1500)]) for name in "ab"]
    with pytest.raises(SchemaError, match="would make more than 4096 columns"):
        Schema(unit="p", columns=columns, derived=[Product("d", of=("a", "b"))])


ALL = [
    Product("xy", of=("x", "y"), missing=1.5),
    Product("xc", of=["x", "c"]),
    Power("x3", of="x", exponent=3, missing=0),
    Log1p("ly", of="y"),
    Log("lly", of="y", missing=1),
    Interval("mid", of="x", lower=-1, upper=1, missing=True),
    Interval("late", of="when", lower=datetime.date(2013, 6, 1)),
    DatePart("month", of="when", part="month", levels=True, missing="level"),
    DatePart("year", of="when", part="year", missing=2013),
]


def test_plain_fields_read_back_equal():
    whole = schema(*ALL)
    assert Schema.from_dict(whole.to_dict()) == whole
    assert "derived" not in schema().to_dict()
    assert copy.deepcopy(whole) == pickle.loads(pickle.dumps(whole)) == whole
    assert pickle.loads(pickle.dumps(whole)).encoded == whole.encoded


def test_a_file_reads_as_declared():
    text = """
    unit = "p"
    [[columns]]
    name = "when"
    kind = "date"
    lower = 2013-01-01
    upper = 2014-01-01T12:00:00+02:00
    [[derived]]
    name = "late"
    kind = "interval"
    of = "when"
    lower = 2013-06-01T06:00:00
    """
    read = Schema.from_dict(tomllib.loads(text))
    assert read.columns == (Date("when", "2013-01-01", "2014-01-01T10:00:00", missing="drop-row"),)
    assert read.derived == (Interval("late", of="when", lower="2013-06-01T06:00:00"),)
