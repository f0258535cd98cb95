"""Rows at several scales: whatever the row and the map, the fourth powers of its two parts add up to at most one, and together they are the
row as far as the scales reach."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgram.errors import BoundBrokenError, MechanismError
from dpgram.rows import clip
from dpgram.rows.clip import GRID, JUST_BELOW_ONE, mapped
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.public_map import MOST_EXPONENT, PublicMap, digest_of
from dpgram.terms.scales import MOST_SCALES, ONE_CLIP, SWITCH, first_scales
from tests.properties.test_mapped import encoded_of, in_python, rows_and_map

COUNTS = st.integers(2, MOST_SCALES)


def images(row, through: PublicMap) -> list[Fraction]:
    """The row's product with the map in grid units, exactly."""
    points = [math.trunc(Fraction(value) * GRID) for value in row]
    lines = zip(through.whole.tolist(), through.exponents.tolist(), strict=True)
    return [Fraction(sum(w * x for w, x in zip(line, points, strict=True))) / Fraction(2) ** e for line, e in lines]


def parts_in_python(row, through: PublicMap, scales) -> tuple[int, list[int], list[int]]:
    """(which scale, what is for the first, what is for that one), one float operation after the other; scale 0 where the row is short."""
    exact = images(row, through)
    too_long = max(0, int(max(map(abs, exact))).bit_length() - 21)
    whole = [math.trunc(image / 2**too_long) for image in exact]
    squares = sum(q * q for q in whole)
    square = Fraction(squares, GRID**2) * 4**too_long
    if square <= 1:
        return 0, whole, []
    s = float(min(square, Fraction(SWITCH * scales[-1])))
    k = next(k for k in range(1, len(scales)) if s <= SWITCH * scales[k])
    total = 1.0 + scales[k] * scales[k]
    root = math.sqrt(total - s * s)
    shares = (s + scales[k] * root) / total, (scales[k] * s - root) / total
    factors = [math.sqrt(share * 2.0**40 / squares) * JUST_BELOW_ONE for share in shares]
    first, second = ([math.trunc(q * factor) for q in whole] for factor in factors)
    return k, first, second


@settings(max_examples=200, deadline=None)
@given(both=rows_and_map(), count=COUNTS)
def test_parts_are_those_of_python_and_their_fourth_powers_add_up_to_at_most_one(both, count):
    (encoded, through), scales = both, first_scales(count)
    rows = mapped(encoded, 1.0, through, scales)
    outer = [list(points.T.astype(int).tolist()) for points in rows.outer]
    for row, inner in zip(encoded.T.tolist(), rows.points.T.tolist(), strict=True):
        k, first, second = parts_in_python(row, through, scales)
        assert inner == first
        if k:
            assert outer[k - 1].pop(0) == second
        squares = [sum(int(q) ** 2 for q in part) for part in (first, second)]
        assert sum(square**2 for square in squares) <= GRID**4
    assert not any(outer)


@settings(max_examples=300, deadline=None)
@given(
    square=st.floats(1, 2e5) | st.sampled_from([3.2, 12.8, 51.2, 1 + 2**-20]),
    turn=st.integers(0, 628).map(lambda degrees: degrees / 100),
    count=COUNTS,
)
@example(square=1 + 2**-20, turn=0.0, count=2)
def test_together_the_parts_are_the_row_as_far_as_the_scales_reach(square, turn, count):
    """|w_0|^2 + R |w_k|^2 is the squared length, or .8 of the last scale, within what truncation takes; both parts lie along the row."""
    scales, length = first_scales(count), math.sqrt(square)
    through = PublicMap.near(length * np.array([[math.cos(turn), 0.0], [math.sin(turn), 0.0]]))
    exact = images([1.0, 0.0], through)
    s = sum(image**2 for image in exact) / GRID**2
    rows = mapped(np.array([[1.0], [0.0]]), 1.0, through, scales)
    k = next((k for k, points in enumerate(rows.outer, 1) if points.shape[1]), 0)
    if k == 0:
        assert s <= 1 + Fraction(8, GRID)
        return
    wanted = min(s, Fraction(8, 10) * int(scales[-1]))
    assert 4 * wanted > Fraction(8, 10) * int(scales[k - 1]) or k == 1
    inner, outer = rows.points[:, 0] / GRID, rows.outer[k - 1][:, 0] / GRID
    slack = 4 * (1 + scales[k] * math.sqrt(outer @ outer)) / GRID + 1e-5 * (square > 4**11)
    assert inner @ inner + scales[k] * (outer @ outer) == pytest.approx(float(wanted), abs=slack)
    assert inner @ inner >= 0.6 - 8 / GRID
    along = np.array([float(image) for image in exact]) / math.sqrt(float(s)) / GRID
    for part in (inner, outer):
        assert part == pytest.approx(math.sqrt(part @ part) * along, abs=4 / GRID)


def test_the_computed_shares_are_within_what_the_proof_allows():
    """c^2 + q^2 <= 1 + 10 u against fifty digits, at random lengths, at the switch and next to one; q is never negative."""
    rng, u = np.random.default_rng(0), Decimal(2) ** -53
    worst = Decimal(0)
    for scale in first_scales(MOST_SCALES)[1:]:
        lengths = np.concatenate(
            [rng.uniform(1, SWITCH * scale, 400), 1 + rng.integers(1, 100, 50) * 2.0**-40, [SWITCH * scale]]
        )
        for cosine, sine in zip(*clip._shares(lengths, np.full(len(lengths), scale)), strict=True):
            with localcontext(prec=50):
                worst = max(worst, Decimal(cosine) ** 2 + Decimal(sine) ** 2 - 1)
            assert sine > 0
    assert 0 < worst <= 10 * u  # above zero: rounding down afterwards is what keeps the bound


@given(both=rows_and_map())
def test_one_scale_is_the_clip_of_today(both):
    encoded, through = both
    rows = mapped(encoded, 1.0, through, ONE_CLIP)
    assert (rows.outer, rows.through) == ((), through.digest)
    assert rows.points.T.tolist() == in_python(encoded, 1.0, through)


@given(both=rows_and_map(), count=COUNTS)
def test_short_rows_are_as_they_are_at_one_scale_and_a_row_is_shared_alone(both, count):
    (encoded, through), scales = both, first_scales(count)
    together, today = mapped(encoded, 1.0, through, scales), mapped(encoded, 1.0, through)
    for place, row in enumerate(encoded.T.tolist()):
        alone = mapped(encoded[:, [place]], 1.0, through, scales)
        assert np.array_equal(alone.points[:, 0], together.points[:, place])
        if parts_in_python(row, through, scales)[0] == 0:
            assert np.array_equal(alone.points, today.points[:, [place]])
            assert not any(points.size for points in alone.outer)


@given(both=rows_and_map(), count=COUNTS, data=st.data())
def test_any_split_merged_is_the_whole(both, count, data):
    (encoded, through), scales = both, first_scales(count)
    zero = GramSum.zero(len(encoded), 1.0, digest_of(through, scales), count)
    whole = zero.update(mapped(encoded, 1.0, through, scales))
    cut = data.draw(st.integers(0, encoded.shape[1]))
    parts = [zero.update(mapped(part, 1.0, through, scales)) for part in np.split(encoded, [cut], axis=1)]
    merged = parts[1].merge(parts[0])
    assert whole.high.shape == (count, len(encoded), len(encoded))
    assert np.array_equal(merged.high, whole.high)
    assert np.array_equal(merged.low, whole.low)


@given(values=st.just(3).flatmap(encoded_of), count=COUNTS)
def test_the_longest_rows_there_are(values, count):
    """Squares far beyond what a float holds: the row counts as .8 of the last scale."""
    through = PublicMap(np.full((3, 3), 2**31, dtype=np.int64), np.full(3, -MOST_EXPONENT))
    rows = mapped(values, 1.0, through, first_scales(count))
    with np.errstate(all="raise"):
        assert np.array_equal(mapped(values, 1.0, through, first_scales(count)).points, rows.points)
    assert not any(points.shape[1] for points in rows.outer[:-1])
    sums = (np.trunc(values * GRID).sum(axis=0) != 0).sum()
    assert rows.outer[-1].shape[1] == sums


@pytest.mark.parametrize("scales", [(), (2.0,), (1.0, 3.0), (1.0, 16.0), first_scales(9), (4.0, 1.0)])
def test_other_scales_are_refused(scales):
    with pytest.raises(MechanismError, match="must be the first of"):
        mapped(np.zeros((2, 1)), 1.0, PublicMap.near(np.eye(2)), scales)


def test_scales_need_a_map_and_a_bound_of_one():
    for through, bound in ((None, 1.0), (PublicMap.near(np.eye(2)), 0.5)):
        with pytest.raises(MechanismError, match="after a public map, with a bound of 1"):
            clip.check_map(through, 2, bound, (1.0, 4.0))


def test_sums_at_other_scales_do_not_mix():
    through = PublicMap.near(np.eye(2))
    one, two = (GramSum.zero(2, 1.0, digest_of(through, first_scales(count)), count) for count in (1, 2))
    for a, b in ((one, two), (two, one)):
        with pytest.raises(Exception, match="Use one map"):
            a.merge(b)


# Mistakes, each of which must show: by the check on every row, or by the tests above.

LONG = np.array([[1.0, 0.9, 0.3, 0.5], [0.5, -0.4, 0.9, 0.1]])


def two_whole_parts(length, scale):
    """Without a division by the norm of the two shares: a full row in the first sum, and the rest in the other."""
    return np.ones_like(length), np.minimum((length - 1) / scale + 0.2, 1.0)


def a_hair_too_large(length, scale):
    total = 1.0 + scale * scale
    root = np.sqrt(total - length * length)
    return (length + scale * root) / total * (1 + 1e-5), (scale * length - root) / total


@pytest.mark.parametrize("wrong", [two_whole_parts, a_hair_too_large])
def test_shares_that_are_too_large_are_noticed(wrong, monkeypatch):
    monkeypatch.setattr(clip, "_shares", wrong)
    with pytest.raises(BoundBrokenError):
        mapped(LONG, 1.0, PublicMap.near(3 * np.eye(2)), first_scales(3))


def test_parts_that_are_rounded_up_are_noticed(monkeypatch):
    monkeypatch.setattr(clip, "_taken_to", lambda most, points, squares: np.rint(points * np.sqrt(most / squares) + 0.5))
    with pytest.raises(BoundBrokenError):
        mapped(LONG, 1.0, PublicMap.near(3 * np.eye(2)), first_scales(3))


RIGHT = clip._shared


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (
            "_shared",
            lambda points, powers, scales, by: RIGHT(points, np.ones_like(powers), scales, by),
        ),  # a scale by the truncated row
        ("SWITCH", 1.0),  # the bound still holds, but the first sum loses most of the longest rows
        ("JUST_BELOW_ONE", 1 - 2.0**-20),
    ],
)
def test_the_comparison_with_python_sees_another_rule(name, wrong, monkeypatch):
    monkeypatch.setattr(clip, name, wrong)
    check = test_parts_are_those_of_python_and_their_fourth_powers_add_up_to_at_most_one.hypothesis.inner_test
    with pytest.raises((AssertionError, IndexError)):
        check((LONG, PublicMap.near(30 * np.eye(2))), 8)
