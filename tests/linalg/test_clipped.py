"""The number of rows of which the long ones were clipped: without bias that its standard error does not show, whatever tails rows have."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dpgram.linalg.clipped import outer_sizes, rows_before_clipping, usual_sizes, with_seen
from dpgram.linalg.scales import grams
from dpgram.mechanisms.whitening import FEW_COLUMNS
from dpgram.terms.scales import ONE_CLIP, SWITCH, first_scales

ROWS, DRAWS = 4000, 300
TAILS = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "elliptical t": lambda rng, n, d: rng.normal(size=(n, d)) / np.sqrt(rng.gamma(2, 0.5, size=(n, 1))),
    "log-normal": lambda rng, n, d: np.exp(rng.normal(size=(n, d))) - math.exp(0.5),
    "uniform": lambda rng, n, d: rng.uniform(-1, 1, size=(n, d)),
}


def white_rows(tails, dim, rows=ROWS, seed=0):
    """Rows with an intercept, and the map of a release that clips hard: of many columns, mapped rows have a mean square of one."""
    rng = np.random.default_rng(seed)
    own = np.column_stack([np.ones(rows), TAILS[tails](rng, rows, dim - 1)])
    through = np.linalg.inv(np.linalg.cholesky(own.T @ own / rows)) / math.sqrt(max(dim, FEW_COLUMNS))
    return own, through


def rounds_of(own, through, sd, scales, draws, share=1.0, seed=1):
    """Rounds with new noise each, all of the same rows."""
    z, share = own @ through.T, np.broadcast_to(share, len(own))
    exact = np.sum([value * np.array(grams([z[share == value]], scales, SWITCH)) for value in np.unique(share)], axis=0)
    rng, dim = np.random.default_rng(seed), len(through)
    for _ in range(draws):
        draw = rng.normal(scale=sd, size=exact.shape)
        noise = np.triu(draw, 1) + np.triu(draw, 1).mT + math.sqrt(2) * draw * np.eye(dim)
        gram, *outer = exact + noise
        yield SimpleNamespace(through=through, gram=gram, outer=tuple(outer), scales=scales, sd_off_diagonal=sd)


def covered(own, through, sd, scales, *, true, white=True, share=1.0):
    found, se = np.transpose(
        [rows_before_clipping(seen, white=white) for seen in rounds_of(own, through, sd, scales, DRAWS, share)]
    )
    return np.mean(np.abs(found - true) < 1.96 * se), found, se


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1])  # of the count of clipped rows
@pytest.mark.parametrize("dim", [4, 22])
@pytest.mark.parametrize("tails", TAILS)
def test_the_standard_error_holds(tails, dim, noise):
    """Of 300 draws of noise for one table 270 at least are within 1.96 standard errors, which are seldom more than twice the noise."""
    own, through = white_rows(tails, dim)
    ones = np.linalg.solve(through.T, np.eye(dim)[0])
    sd = noise * ROWS / (math.sqrt(2) * (ones @ ones))
    share, found, se = covered(own, through, sd, first_scales(4), true=ROWS)
    assert share > 0.9
    assert np.std(found) < 1.25 * np.mean(se)
    assert np.mean(se) < max(0.04, 2.2 * noise) * ROWS


def test_without_putting_back_what_the_clip_took_it_would_be_far_off():
    own, through = white_rows("elliptical t", 22)
    seen = next(rounds_of(own, through, 1e-9, first_scales(6), 1))
    ones = np.linalg.solve(through.T, np.eye(22)[0])
    assert ones @ seen.gram @ ones < 0.9 * ROWS
    assert rows_before_clipping(seen, white=True) == pytest.approx((ROWS, 0.0), abs=1e-3)  # exact without noise


@pytest.mark.parametrize("rows", ["shares", "dropped"])
def test_rows_count_by_their_share(rows):
    own, through = white_rows("normal", 10)
    rng = np.random.default_rng(4)
    share = rng.choice([0.2, 0.5, 1.0], ROWS) if rows == "shares" else (rng.random(ROWS) > 0.3).astype(float)
    hit, found, se = covered(own, through, 3.0, first_scales(3), true=share.sum(), share=share)
    assert hit > 0.9
    assert abs(np.mean(found) - share.sum()) < np.mean(se)


def test_rows_that_are_not_white_are_summed_over_all_scales():
    """After a first map that makes all rows long, hardly any is in the first matrix."""
    own, _ = white_rows("normal", 5)
    through = 2.5 * np.eye(5)
    hit, found, se = covered(own, through, 1.0, first_scales(5), true=ROWS, white=False)
    assert 0.9 < hit < 0.99
    assert np.std(found) == pytest.approx(np.mean(se), rel=0.15)
    assert abs(np.mean(found) - ROWS) < 0.3 * np.mean(se)


def test_without_outer_matrices_rows_are_taken_to_be_normal():
    own, through = white_rows("normal", 20)
    seen = next(rounds_of(own, through, 1e-9, ONE_CLIP, 1))
    count, se = rows_before_clipping(seen, white=True)
    assert count == pytest.approx(ROWS, rel=0.02)
    assert 0.02 * ROWS < se < 0.2 * ROWS
    few = next(rounds_of(own, through / 3, 1e-9, ONE_CLIP, 1))
    assert rows_before_clipping(few, white=True) == pytest.approx((ROWS, 0.0), abs=1.0)  # none is clipped


def test_sizes_are_as_unsure_as_noise_makes_them():
    clear, unsure = outer_sizes(200 * np.eye(3), np.stack([50 * np.eye(3)]), 1.0)
    assert clear == pytest.approx([50.0], rel=0.01)
    assert unsure == pytest.approx([math.sqrt(2 / 3)], rel=0.01)
    hidden, left = outer_sizes(200 * np.eye(3), np.stack([-5 * np.eye(3)]), 1.0)
    assert 0 < left[0] < hidden[0] * 1.5 < 1.0


@pytest.mark.parametrize("sd", [1e-12, 1.0, 1e9])
def test_nothing_but_noise_gives_a_number(sd):
    for outer in ((), (-sd * np.eye(3),) * 3):
        seen = SimpleNamespace(
            through=np.eye(3), gram=-sd * np.eye(3), outer=outer, scales=first_scales(1 + len(outer)), sd_off_diagonal=sd
        )
        for white in (True, False):
            assert np.isfinite(rows_before_clipping(seen, white=white)).all()


def test_usual_sizes_are_positive_where_nothing_is_seen_and_those_seen_where_all_is():
    inner = 200.0 * np.eye(3)
    hidden = usual_sizes(inner, np.stack([np.zeros((3, 3))] * 4), 1.0)
    assert (hidden > 0).all()
    assert (np.diff(hidden) < 0).all()
    seen = usual_sizes(inner, np.stack([50.0 * np.eye(3), 40.0 * np.eye(3)]), 1e-3)
    assert seen == pytest.approx([50.0, 40.0], rel=1e-3)


def test_long_tails_at_scales_that_show_them_make_hidden_ones_expected_larger():
    inner, dark = 2000.0 * np.eye(3), np.zeros((3, 3))
    long, short = (usual_sizes(inner, np.stack([60.0 * np.eye(3), size * np.eye(3), dark]), 1.0)[2] for size in (27.0, 0.0))
    assert long > 3 * short


@pytest.mark.parametrize(("noise", "found"), [(0.0, 7.0), (1e300, 2.0)])
def test_what_is_seen_counts_as_far_as_noise_lets_it(noise, found):
    assert with_seen(np.array([2.0]), np.array([7.0]), noise) == pytest.approx([found])


def test_sizes_are_never_negative():
    assert with_seen(np.array([2.0, 0.0]), np.array([-7.0, -7.0]), 0.1) == pytest.approx([0.0, 0.0])
