"""Symmetric noise that is rounded in floats where they are certain: the bits are those that balls give, and bounds on errors hold."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgram.mechanisms.gaussian_noise import add_symmetric_noise, diagonal_sd
from dpgram.sampling import symmetric
from dpgram.sampling.base import exact_gram, grid_step
from dpgram.sampling.bits import LazyUniforms, SecureBits, SeededBits, Uniforms, _between
from dpgram.sampling.enclosed import normal_pairs
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.reals import RealMatrix, box_muller, precision

WORDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 63).map(lambda k: 2**k),
    st.integers(1, 64).map(lambda k: 2**k - 1),
    st.integers(0, 63).map(lambda k: 2**64 - 2**k),
    st.builds(lambda eighth, by: ((eighth << 61) + by) % 2**64, st.integers(0, 7), st.integers(-(2**12), 2**12)),
)


def pairs_of(first, second):
    return [numbers[0] for numbers in normal_pairs(np.array([first], np.uint64), np.array([second], np.uint64))]


@settings(max_examples=1500, deadline=None)
@given(first=WORDS, second=WORDS)
@example(first=2**64 - 1, second=0)
@example(first=0, second=2**63)
@example(first=2**20, second=2**61)
def test_floats_are_within_their_bounds_of_all_numbers_with_these_bits(first, second):
    *near, error = pairs_of(first, second)
    if np.isinf(error):
        return
    with precision(192):
        for ball, number in zip(box_muller(_between(first, 64), _between(second, 64)), near, strict=True):
            assert abs(ball - float(number)).upper() <= float(error)


def test_bounds_are_tight_enough_to_be_of_use():
    words = np.random.default_rng(0).integers(0, 2**64, (2, 20_000), dtype=np.uint64)
    error = normal_pairs(*words)[2]
    assert np.median(error) < 2.0**-45
    assert np.mean(error > 2.0**-40) < 1e-3


def test_constants_are_the_floats_nearest_to_what_they_stand_for():
    with precision(128):
        assert float(arb(2).log().mid()) == 0.6931471805599453
        assert float((2 * arb.pi()).mid()) == 6.283185307179586


def gram(dim, seed):
    """Symmetric whole numbers: small enough that the last digit of a sum shows, and of 80 bits where ``seed`` is 1."""
    rng = np.random.default_rng(seed)
    draw = rng.integers(-(2**52), 2**52, (dim, dim)).astype(object) * (1 if seed != 1 else 2**28 + 1)
    return exact_gram(np.triu(draw) + np.triu(draw, 1).T, -40)


def by_formula(known, off, on, source):
    """The noise as floats draw it: a whole matrix of normal numbers, of which half is multiplied by zero."""
    dim = len(known)
    draw = source.normal(1.0, (dim, dim))
    upper = np.triu(np.ones((dim, dim)), 1) * draw
    return known + (off * (upper + upper.mT) + on * (np.eye(dim) * draw))


@pytest.mark.parametrize("dim", [1, 2, 3, 12, 31])
@pytest.mark.parametrize("sd", [0.37, 11.3, 1e-4, 1e7])
@pytest.mark.parametrize("coarser", [0, 1, 30, -20])
def test_the_bits_are_those_of_balls(dim, sd, coarser):
    """Two matrices from one source, so that the second shows whether the first took as many numbers."""
    step, seed = np.ldexp(grid_step(sd), coarser), 7 * dim
    one, other = ExactSource(seed), ExactSource(seed)
    for number in range(2):
        known = gram(dim, number)
        fast = one.publish(add_symmetric_noise(known, sd, diagonal_sd(sd), one), step)
        assert np.array_equal(fast, other.publish(by_formula(known, sd, diagonal_sd(sd), other), step))


def test_floats_decide_nearly_all_and_balls_the_rest(monkeypatch):
    known, sd, asked = gram(60, 2), 3.7, []
    ball, whole = symmetric.NoisyMatrix.ball, None
    monkeypatch.setattr(symmetric.NoisyMatrix, "ball", lambda self, *place: asked.append(place) or ball(self, *place))
    for error in (None, np.inf):  # nothing is certain the second time
        if error is not None:
            monkeypatch.setattr(
                symmetric, "normal_pairs", lambda *words: (*normal_pairs(*words)[:2], np.full(len(words[0]), np.inf))
            )
        source = ExactSource(5)
        made = source.publish(add_symmetric_noise(known, sd, diagonal_sd(sd), source), grid_step(sd))
        assert whole is None or np.array_equal(made, whole)
        assert len(asked) < 20 if error is None else len(asked) >= 60 * 61 // 2
        whole, _ = made, asked.clear()


@pytest.mark.parametrize("wrong", [2.0**-30, -(2.0**-30)])
def test_floats_that_are_further_off_than_they_say_are_seen(wrong, monkeypatch):
    """The mistake: a number is off by some hundredths of the grid, and its bound does not say so."""
    known, sd = gram(60, 2), 3.7
    right = ExactSource(5).publish(add_symmetric_noise(known, sd, diagonal_sd(sd), ExactSource(5)), grid_step(sd))
    monkeypatch.setattr(symmetric, "normal_pairs", lambda *words: (normal_pairs(*words)[0] + wrong, *normal_pairs(*words)[1:]))
    off = ExactSource(5).publish(add_symmetric_noise(known, sd, diagonal_sd(sd), ExactSource(5)), grid_step(sd))
    assert not np.array_equal(right, off)


def test_noise_on_what_is_not_whole_is_balls_as_before():
    known, sd = RealMatrix.of_floats(np.diag([1.5, 2.25, 3.0])), 0.5
    one, other = ExactSource(3), ExactSource(3)
    noisy = add_symmetric_noise(known, sd, diagonal_sd(sd), one)
    assert not isinstance(noisy, symmetric.NoisyMatrix)
    assert np.array_equal(one.publish(noisy, 2.0**-20), other.publish(by_formula(known, sd, diagonal_sd(sd), other), 2.0**-20))


@given(order=st.permutations(range(6)), bits=st.lists(st.integers(1, 300), min_size=6, max_size=6))
def test_numbers_revealed_one_by_one_are_those_revealed_together(order, bits):
    together, one_by_one = Uniforms(6, SeededBits(4)), LazyUniforms(6, SeededBits(4))
    with precision(400):
        finest = together.balls(320)
        for number in order:
            assert one_by_one.ball(number, bits[number]).contains(finest[number])
        assert [int(word) for word in one_by_one.words(np.arange(6))] == [
            int((2**64 * ball).floor().unique_fmpz()) for ball in finest
        ]


def test_what_was_drawn_stays_and_what_is_below_the_diagonal_is_never_drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "os.urandom", lambda count: drawn.append(count) or bytes(np.random.default_rng(len(drawn)).bytes(count))
    )
    uniforms = LazyUniforms(4, SecureBits())
    first = int(uniforms.words(np.array([2]))[0])
    with precision(300):
        coarse, fine = uniforms.ball(2, 64), uniforms.ball(2, 256)
        assert coarse.contains(fine)
        assert fine.contains(uniforms.ball(2, 256))
        assert int((2**64 * fine).floor().unique_fmpz()) == first
    drawn.clear()
    source = ExactSource()
    source.publish(add_symmetric_noise(gram(40, 0), 1.0, diagonal_sd(1.0), source), grid_step(1.0))
    assert 40 * 41 // 2 * 8 <= sum(drawn) <= (40 * 41 // 2 + 2 * 40) * 8 + 200


@pytest.mark.parametrize("sd", [0.0, 5e-324, 5.3e-312, 1e-300, 1e307])
def test_no_bound_vanishes_at_the_ends_of_the_range(sd):
    """Below the smallest normal float products lose more than their relative error says, and the bound still covers it."""
    noise = symmetric.SymmetricNoise(3, sd, sd, SeededBits(3))
    rows, columns = np.triu_indices(3)
    with np.errstate(over="ignore", invalid="ignore"):
        _, error = noise.enclosed(rows, columns)
    assert not (error < 2.0**-1072).any()
    known = RealMatrix.of_integers(np.arange(9, dtype=object).reshape(3, 3), -1087)
    nearest, certain = symmetric.NoisyMatrix(known, noise).nearest(rows, columns, -1034)  # without a warning
    assert len(nearest) == len(certain) == 6
