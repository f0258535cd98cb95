"""What a row counts as, by weight and unit, and that the rows of a unit together never count as more than its limit, in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram import Numeric, Schema
from dpgram.engines.local import LocalPass
from dpgram.errors import MechanismError, TableError
from dpgram.rows import shares
from dpgram.rows.bin_counts import BinCounts
from dpgram.rows.clip import clip, largest_square, mapped
from dpgram.rows.gram_sum import LIMB_BITS
from dpgram.rows.shares import Shares, in_grid_units
from dpgram.sources.open import open_source
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import first_scales

COLUMNS = [Numeric("x", -1, 1), Numeric("y", -1, 1)]


def schema(most=None, largest=None, **more) -> Schema:
    units = {} if most is None else {"unit_id": "who", "rows_per_unit": most}
    weights = {} if largest is None else {"weight": "w", "largest_weight": largest}
    return Schema(unit="person", columns=COLUMNS, **units, **weights, **more)


def factors(most, rows, largest=None, weights=None) -> np.ndarray:
    """Factors of rows whose units have so many rows."""
    cells = {} if weights is None else {"w": pa.array(weights, pa.float64())}
    batch = pa.record_batch({"x": pa.array(np.zeros(len(rows))), **cells})
    found = Shares(schema(most, largest), lambda _: np.asarray(rows)).of(batch)
    assert found is not None
    return found


ROWS = st.integers(1, 2**40)
LIMITS = st.integers(1, 10**6)


def the_shares_of_a_unit_add_up_to_its_limit(most, rows, weight):
    (factor,) = factors(most, [rows], 3.0, [weight])
    share = Fraction(factor) ** 2
    assert share * rows <= most
    assert share * 3 <= Fraction(weight)
    assert share * rows >= Fraction(0.999999) * min(most, rows) * Fraction(weight) / 3
    assert int(in_grid_units(np.array([factor]), LIMB_BITS)[0]) * rows <= most << LIMB_BITS


@settings(max_examples=300, deadline=None)
@given(LIMITS, ROWS, st.floats(1e-300, 3.0))
def test_the_shares_of_a_unit_add_up_to_its_limit(most, rows, weight):
    the_shares_of_a_unit_add_up_to_its_limit(most, rows, weight)


@pytest.mark.parametrize("rows", [3, 5, 6, 7, 10, 11, 12, 13, 14, 15, 17, 19, 21, 22, 23, 24])
def test_no_factor_is_rounded_up(rows):
    the_shares_of_a_unit_add_up_to_its_limit(1, rows, 3.0)


def test_rounding_up_would_be_seen(monkeypatch):
    monkeypatch.setattr(shares, "JUST_BELOW_ONE", 1 + 2.0**-50)
    with pytest.raises(AssertionError):
        the_shares_of_a_unit_add_up_to_its_limit(1, 3, 3.0)


def test_rows_within_the_limit_count_in_full():
    assert (factors(3, [1, 2, 3]) == 1.0).all()
    assert (factors(3, [1, 2], 5.0, [5.0, 9.0]) == 1.0).all()  # a weight above the largest counts as it


def test_rows_without_an_id_or_a_weight_count_as_nothing():
    assert factors(3, [0]) == 0.0
    assert (factors(3, [1] * 5, 5.0, [None, np.nan, np.inf, -1.0, 0.0]) == 0.0).all()


def test_rows_of_units_that_were_not_counted_are_never_summed():
    with pytest.raises(MechanismError, match="were not counted"):
        Shares(schema(2)).of(pa.record_batch({"x": [1.0], "y": [1.0], "who": ["a"]}))
    with pytest.raises(MechanismError, match="were not counted"):
        LocalPass(open_source({"x": [1.0], "y": [1.0], "who": ["a"]}), schema(2)).gram(2.0)


POINTS = st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(POINTS, st.integers(1, 9), st.floats(0.1, 2.0))
def test_a_units_rows_have_together_the_trace_of_its_limit(rows, most, bound):
    found = factors(most, [len(rows)] * len(rows))
    points = clip(np.array(rows).T, bound, found).points
    assert sum(int(p) ** 2 for p in points.ravel()) <= most * largest_square(bound)


@settings(max_examples=200, deadline=None)
@given(POINTS, st.integers(1, 9), st.integers(1, 4))
def test_at_several_scales_the_stack_is_no_longer_than_the_limit(rows, most, scales):
    found = factors(most, [len(rows)] * len(rows))
    made = mapped(np.array(rows).T, 1.0, PublicMap.near(30 * np.eye(3)), first_scales(scales), found)
    grams = [part @ part.T / 4.0**20 for part in (made.points, *made.outer)]
    assert np.sqrt(sum(np.sum(each**2) for each in grams)) <= most * (1 + 1e-12)


def test_outer_parts_are_shared_too(monkeypatch):
    """The bound at several scales would be broken by a factor that reaches the first scale alone."""
    rows, found = np.full((3, 8), 1.0), factors(1, [8] * 8)
    whole, part = (mapped(rows, 1.0, PublicMap.near(30 * np.eye(3)), first_scales(4), each) for each in (None, found))
    for one, other in zip((whole.points, *whole.outer), (part.points, *part.outer), strict=True):
        np.testing.assert_allclose(other @ other.T, one @ one.T / 8, rtol=1e-4)


BINS = Bins({"x": (-0.5, 0.0, 0.5), "y": (0.0,)})


def test_counts_are_weighted_and_never_above_the_limit():
    cells = {"x": [-1.0, 0.2, 0.2, 0.9, np.nan], "y": [-1.0, 1.0, 1.0, 1.0, 1.0], "who": list("aabbb")}
    counts = BinCounts(schema(1), BINS, shares=Shares(schema(1), lambda _: np.array([2, 2, 3, 3, 3])))
    counts.add(pa.record_batch(cells))
    total = counts.total().in_scaled_units()
    found = BINS.unpacked(total)
    x, y = (found[name] for name in ("x", "y")) if isinstance(found, dict) else (found[:4], found[4:])
    np.testing.assert_allclose(x, [0.5, 0, 0.5 + 1 / 3, 1 / 3], atol=1e-9)
    np.testing.assert_allclose(y, [0.5, 1.5], atol=1e-9)
    assert sum(x) <= 2
    assert sum(y) <= 2


def test_counts_beyond_eight_million_shares_do_not_overflow():
    """2^23 shares in units of 2^-40 are more than 63 bits hold: they are carried."""
    counts = BinCounts(schema(1), BINS, shares=Shares(schema(1), lambda batch: np.full(batch.num_rows, 2)))
    batch = pa.record_batch({name: pa.array(np.full(2**20, 0.7)) for name in ("x", "y", "who")})
    for _ in range(20):
        counts.add(batch)
    assert counts.total().in_scaled_units().max() == pytest.approx(10 * 2**20)


def panel(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1.2, 1.2, (2, rows))
    x[rng.random(rows) < 0.1] = np.nan
    return {"x": x, "y": y, "who": rng.integers(0, max(1, rows // 3), rows), "w": rng.uniform(-1, 6, rows)}


def expected(table: dict[str, np.ndarray], most: int, largest: float) -> np.ndarray:
    """The weighted Gram by plain arithmetic."""
    _, unit, counts = np.unique(table["who"], return_inverse=True, return_counts=True)
    share = np.minimum(1, most / counts[unit]) * np.clip(table["w"], 0, largest) / largest * np.isfinite(table["x"])
    rows = np.column_stack([np.ones(len(share)), np.nan_to_num(table["x"]), table["y"]]).clip(-1, 1)
    return (rows * share[:, None]).T @ rows


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("most", [1, 2, 100])
def test_a_pass_weighs_rows(threads, most):
    table, declared = panel(20_000), schema(most, 5.0)
    rows_pass = LocalPass(open_source(table), declared, threads=threads)
    assert rows_pass.count_units() == len(np.unique(table["who"]))
    found = rows_pass.gram(declared.effective_row_bound)
    np.testing.assert_allclose(found.in_scaled_units(), expected(table, most, 5.0), rtol=1e-4, atol=0.05)
    kept, rows = rows_pass.kept(None)
    assert rows == found.rows
    again = kept.gram(declared.effective_row_bound)
    assert np.array_equal(again.high, found.high)
    assert np.array_equal(again.low, found.low)


def test_a_table_that_grows_after_units_were_counted_is_an_error():
    table = panel(1000)
    rows_pass = LocalPass(source := open_source(table), schema(2))
    rows_pass.count_units()
    longer = open_source({name: np.append(cells, cells[-1]) for name, cells in table.items()})
    source.parts = longer.parts  # type: ignore[method-assign]
    with pytest.raises(TableError, match="was changed"):
        rows_pass.gram(2.0)
