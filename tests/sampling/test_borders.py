"""What the sampling room promises, held exactly at its limits and one step beyond them."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.sampling import certified, choose, enclosed, variates
from dpgram.sampling.base import exact_gram, exactly, known
from dpgram.sampling.bits import LazyUniforms, SeededBits, Uniforms
from dpgram.sampling.certified import is_above, smallest_from_below
from dpgram.sampling.choose import chosen
from dpgram.sampling.exact import ExactSource, _Normals
from dpgram.sampling.reals import RealMatrix, precision
from dpgram.sampling.secure import SecureSource, box_muller, fine_uniform
from dpgram.sampling.seeded import SeededSource
from dpgram.sampling.symmetric import NoisyMatrix, SymmetricNoise


@pytest.mark.parametrize("source", [ExactSource(), ExactSource(3), SecureSource(), SeededSource(3)])
def test_a_key_has_as_many_bytes_as_it_says(source):
    assert len(source.key()) == 32


def test_the_widest_exact_release():
    """Exact arithmetic is the default up to a minute, and one column more is drawn in floats."""
    seconds = [1.6e-5 * dim * dim + 2.2e-8 * dim * dim * dim for dim in range(4000)]
    widest = max(dim for dim, each in enumerate(seconds) if each <= 60)
    assert choose.exact_seconds(widest) == pytest.approx(seconds[widest], rel=1e-12)
    assert chosen(None, widest, private=True) == "exact"
    assert chosen(None, widest + 1, private=True) == "float"
    assert chosen(None, 1, private=False) == "float"


class Planned:
    """A source of bits that gives what it is told to, and counts."""

    def __init__(self, fill):
        self.fill, self.asked, self.numbers = fill, [], 0

    def places(self, numbers):
        self.numbers += numbers
        return list(range(numbers))

    def more(self, places, known, width):
        self.asked.append((len(places), known, width))
        return bytes([self.fill]) * (width * len(places))


@pytest.mark.parametrize("bits", [1, 8, 9, 16, 63, 64, 65, 72, 128, 257])
def test_as_many_bits_are_drawn_as_were_asked_for(bits):
    for kind in (Uniforms, LazyUniforms):
        source = Planned(255)
        uniforms = kind(3, source)
        with precision(400):
            for asked in (bits, bits + 7, bits + 8):
                ball = uniforms.balls(asked)[1] if kind is Uniforms else uniforms.ball(1, asked)
                assert 2 * ball.rad() <= arb((1, -asked))
                assert ball.contains(1 - arb((1, -600)))
                drawn = sum(width for numbers, _, width in source.asked if numbers)
                assert drawn == (math.ceil(asked / 8) if kind is Uniforms else max(8, math.ceil(asked / 8)))


@pytest.mark.parametrize(("count", "needed"), [(1, 2), (2, 2), (3, 4), (4, 4), (9, 10)])
def test_as_many_uniform_numbers_are_taken_as_normal_ones_need(count, needed):
    source = Planned(0)
    _Normals(count, source)
    assert source.numbers == needed


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_symmetric_noise_takes_the_numbers_of_a_whole_matrix(dim):
    source = Planned(0)
    SymmetricNoise(dim, 1.0, 1.0, source)
    assert source.numbers == 2 * math.ceil(dim * dim / 2)


def told(monkeypatch, *words):
    """The operating system's source gives these 64-bit words next."""
    given = np.array(words, dtype=np.uint64).tobytes()
    monkeypatch.setattr(os, "urandom", lambda size: given[:size] if size == len(given) else pytest.fail(f"{size} bytes"))


def test_uniform_numbers_of_the_secure_source_are_fine_near_zero_and_below_one(monkeypatch):
    most = 2**64 - 1
    told(monkeypatch, 0, 5 << 40, 1 << 63, most, 3, 7, 0, most)
    found = SecureSource().uniform((4,))
    assert found[0] == math.ldexp(3.5, -128)
    assert found[1] == pytest.approx(5 * 2.0**-24, rel=1e-15)
    assert found[2] == 0.5
    assert found[3] == 1 - 2.0**-53


@pytest.mark.parametrize("count", [1, 2, 3])
def test_normal_numbers_of_the_secure_source_are_box_and_mullers(count, monkeypatch):
    pairs = math.ceil(count / 2)
    words = np.random.default_rng(count).integers(0, 2**64, 3 * pairs, dtype=np.uint64)
    told(monkeypatch, *words)  # and no bits more than are needed
    found = SecureSource().normal(3.0, (count,))
    high, low, turn = (words[i * pairs : (i + 1) * pairs] for i in range(3))
    u = [(int(one) + (int(other) + 0.5) / 2**64) / 2**64 for one, other in zip(high, low, strict=True)]
    angle = [2 * math.pi * int(t) / 2**64 for t in turn]
    radius = [math.sqrt(-2 * math.log(each)) for each in u]
    both = [r * math.cos(a) for r, a in zip(radius, angle, strict=True)] + [
        r * math.sin(a) for r, a in zip(radius, angle, strict=True)
    ]
    assert found == pytest.approx([3.0 * each for each in both[:count]], rel=1e-12)
    assert box_muller(words.reshape(3, pairs)).shape == (2 * pairs,)
    assert fine_uniform(high, low) == pytest.approx(u, rel=1e-15)


def test_what_the_secure_source_publishes_lies_on_the_grid_and_has_no_negative_zero():
    found = SecureSource().publish(np.array([[0.3, -0.1], [-0.1, -7.45]]), 0.25)
    assert found.tolist() == [[0.25, 0.0], [0.0, -7.5]]
    assert not np.signbit(found[0, 1])
    assert SecureSource().publish_below(-0.3, 0.25) == -0.5
    assert SecureSource().publish_below(0.5, 0.25) == 0.5


def test_a_number_known_in_an_arithmetic():
    gram = np.array([[1.5]])
    assert known(gram, SeededSource(1)) is gram
    assert isinstance(known(gram, ExactSource(1)), RealMatrix)
    exact = exactly(gram)
    assert known(exact, ExactSource(1)) is exact


@pytest.mark.parametrize(("dim", "exponent"), [(1, -4000), (8, -8000), (8, -5000), (24, -16000)])
def test_levels_are_told_apart_as_finely_as_the_theorem_says(dim, exponent):
    """By 4096 bits and 512 more for each column, rounded down to a power of two times 128; one more is left uncertain."""
    ones = exact_gram(np.diag([1] * dim).astype(object), 0)
    assert is_above(ones, 1 - Fraction(2) ** exponent) is True
    assert is_above(ones, 1 + Fraction(2) ** exponent) is False
    assert is_above(ones, 1 - Fraction(2) ** (-4096 - 512 * dim - 1)) is None


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 6, 7, 11, 16])
def test_as_many_levels_are_tried_as_may_be_uncertain(dim, monkeypatch):
    asked = []

    def stubborn(matrix, level):
        asked.append(level)
        return None if len(asked) <= dim * (dim + 1) // 2 else True

    monkeypatch.setattr(certified, "is_above", stubborn)
    level, above = certified._decided_between(exact_gram(np.eye(dim).astype(object), 0), Fraction(0), Fraction(32), Fraction(1))
    assert above
    assert len(set(asked)) == len(asked)
    assert 16 <= level < 17


@pytest.mark.parametrize("seed", range(4))
def test_few_comparisons_are_needed_where_floats_find_the_eigenvector(seed, monkeypatch):
    rows = np.random.default_rng(seed).integers(-(2**20), 2**20, size=(40, 6)).astype(object)
    asked, real = [], is_above
    monkeypatch.setattr(certified, "is_above", lambda matrix, level: asked.append(level) or real(matrix, level))
    gram = rows.T @ rows
    found = smallest_from_below(exact_gram(gram, -40), 2.0**-20)
    assert len(asked) <= 2
    smallest = float(np.linalg.eigvalsh((gram / 2**40).astype(float))[0])
    assert smallest - 2.0**-20 <= float(found) <= smallest + 1e-9


def lemma_three(first, log, radius):
    """(of the logarithm, of the number): the bounds that the proof needs, from the bits of the word and the sizes found."""
    off = 2 * (1.12 / first + 2.0**-53 * (4 * abs(log) + 5.2))
    return off / 2, 1.001 * off / radius + radius * (2.0**-50 + 3 * 2.0**-53)


def test_bounds_on_floats_are_no_smaller_than_the_proof_needs_and_no_larger_than_is_of_use():
    rng = np.random.default_rng(3)
    sizes = rng.integers(2**20, 2**64, 400, dtype=np.uint64) >> rng.integers(0, 44, 400, dtype=np.uint64)
    words = np.concatenate([np.array([2**20, 2**20 + 1, 2**40, 2**63, 2**64 - 2**30, 2**64 - 1], np.uint64), sizes])
    words = words[words >= 2**20]
    log, apart = enclosed._logarithm(words)
    assert np.isfinite(apart).all()
    cosine, sine, error = enclosed.normal_pairs(words, words[::-1].copy())
    finite = 0
    for word, one, off, each, c, s in zip(words, log, apart, error, cosine, sine, strict=True):
        needed, _ = lemma_three(float(word), one, 1.0)
        assert needed <= off <= 2 * needed
        if math.isfinite(each):
            radius, finite = math.hypot(c, s), finite + 1
            needed = lemma_three(float(word), one, radius)[1]
            assert needed <= each
            stated = 2 * off / radius + 2.0**-48 * radius
            assert stated * (1 - 1e-9) <= each <= 1.03 * stated
        else:
            assert -2 * one <= 4.01 * off  # nothing is certain of its root
    assert finite > 0.99 * len(words) - 3


@pytest.mark.parametrize(("share", "certain"), [(0.99, True), (1.0, False), (1.01, False)])
def test_nothing_is_certain_where_half_of_a_square_may_be_error(share, certain, monkeypatch):
    """-2 ln u is 2 and known to within ``share``: where that is all of one, its root may be anything."""
    monkeypatch.setattr(enclosed, "_logarithm", lambda words: (np.array([-1.0]), np.array([share / 2])))
    error = enclosed.normal_pairs(np.array([1], np.uint64), np.array([1], np.uint64))[2]
    assert np.isfinite(error).all() == certain


class Given:
    """Noise of which the floats and their errors are given."""

    def __init__(self, values, error):
        self.values, self.error, self.shape = np.array(values), error, (len(values), len(values))

    def at(self, bits):
        raise NotImplementedError

    def enclosed(self, rows, columns):
        return self.values, np.full(len(self.values), self.error)


@pytest.mark.parametrize("shift", [-20, -1, 0, 1, 5])
def test_an_entry_is_certain_where_no_tie_is_within_its_error(shift):
    """Whole numbers times 2^-40 plus noise, on grids that are finer and coarser: nearest, or left open next to a tie."""
    step = 2.0 ** (-40 + shift)
    values = np.array([0.49, 0.51, 0.495, 0.505, 0.0, -0.495, -0.505, 1e9 + 0.25, 1e9 + 0.499]) * step
    dim = len(values)
    table = np.array([[5 * i * max(1, 2**shift) for i in range(dim)]] * dim, dtype=object)
    matrix = NoisyMatrix(exact_gram(table, -40), Given(values, 0.007 * step))
    nearest, certain = matrix.nearest(np.zeros(dim, int), np.arange(dim), -40 + shift)
    assert certain.tolist() == [True, True, False, False, True, False, False, True, False]
    rounded = [0, 1, None, None, 0, None, None, 10**9, None]
    for i, each in enumerate(rounded):
        if each is not None:
            assert nearest[i] == 5 * i * (1 if shift >= 0 else 2**-shift) + each


def test_noise_so_large_that_floats_know_no_fraction_is_left_open():
    for size in (2.0**49 + 0.25, 2.0**50, 2.0**50 + 0.25, 2.0**51, 1e30, np.inf, np.nan):
        matrix = NoisyMatrix(exact_gram(np.zeros((1, 1), dtype=object), 0), Given([size], 0.0))
        certain = matrix.nearest(np.zeros(1, int), np.zeros(1, int), 0)[1]
        assert not certain.any() or size < 2.0**50


@pytest.mark.parametrize("x", [0.3, 1.0, 77.25, 2.0**20])
def test_the_error_of_a_rounding_is_no_smaller_than_the_proof_needs(x):
    """Errors of the sums, e (|x| + 4.2), are added to that of the noise: an entry as close to a tie as that is left open."""
    needed = 2.0**-53 * (x + 4.2)
    for by, expected in ((0.99 * needed, False), (-0.99 * needed, False), (20 * needed, True), (-20 * needed, True)):
        value = math.floor(x) + 0.5 + by
        matrix = NoisyMatrix(exact_gram(np.zeros((1, 1), dtype=object), 0), Given([value], 0.0))
        if value != math.floor(x) + 0.5 or not expected:
            assert matrix.nearest(np.zeros(1, int), np.zeros(1, int), 0)[1].all() == expected


@pytest.mark.parametrize(("by", "certain"), [(6, False), (-6, False), (11, True), (-11, True)])
def test_small_noise_on_an_entry_halfway_between_two_multiples(by, certain):
    """2^-50 is room enough for the roundings, and kept: ``by`` is in units of 2^-53."""
    matrix = NoisyMatrix(exact_gram(np.array([[1]], dtype=object), -1), Given([by * 2.0**-53], 0.0))
    nearest, found = matrix.nearest(np.zeros(1, int), np.zeros(1, int), 0)
    assert found.all() == certain
    assert not certain or nearest[0] == (by > 0)


@pytest.mark.parametrize("sd", [0.5, 3.0])
def test_the_bound_of_scaled_noise_has_room_for_one_rounding_more(sd):
    noise = SymmetricNoise(30, sd, 1.5 * sd, SeededBits(2))
    rows, columns = np.triu_indices(30)
    values, error = noise.enclosed(rows, columns)
    places = rows * 30 + columns
    pairs = places // 2
    words = [np.array([int(noise._uniforms.words(np.array([2 * p + i]))[0]) for p in pairs], np.uint64) for i in (0, 1)]
    unscaled = enclosed.normal_pairs(*words)[2] * np.where(rows == columns, 1.5 * sd, sd)
    assert np.all(error >= unscaled + 2.0**-53 * np.abs(values))
    assert np.all(error <= 1.02 * unscaled + 2.0**-51.9 * np.abs(values))


@pytest.mark.parametrize("w", [1e-9, 0.004, -0.00999, 0.00999, 0.01, 0.011, -0.5, 3.0])
def test_a_number_less_its_logarithm(w):
    with mpmath.workdps(40):
        exact = mpmath.mpf(w) - mpmath.log1p(mpmath.mpf(w))
    assert float(variates._minus_log1p(np.array(w))) == pytest.approx(
        float(exact), rel=1e-15 if abs(w) < 0.01 else 1e-13, abs=0
    )


def test_numbers_for_one_release_and_for_many():
    assert variates.per_copy(2.5) == 2.5
    assert variates.per_copy(np.array([1.0, 2.0])).shape == (2, 1, 1)
    assert isinstance(variates.plain(np.float64(2.0)), float)
    assert variates.plain(np.array([2.0])).tolist() == [2.0]


def test_symmetric_noise_in_floats_is_the_upper_half_twice():
    draw = SeededSource(4).normal(1.0, (3, 3))
    noise = variates.symmetric_normal(3, 2.0, 5.0, SeededSource(4))
    assert np.array_equal(noise, noise.T)
    assert np.array_equal(np.triu(noise, 1), 2.0 * np.triu(draw, 1))
    assert np.array_equal(np.diag(noise), 5.0 * np.diag(draw))


def test_noise_on_a_grid_half_as_coarse_as_the_table_is_that_of_balls():
    gram = exact_gram(np.array([[3, -5], [-5, 8]], dtype=object) << 40, -40)
    for exponent in (-42, -41, -40, -39):
        fast = ExactSource(6).publish(add_symmetric_noise(gram, 1e-3, 2e-3, ExactSource(6)), 2.0**exponent)
        noise = SymmetricNoise(2, 1e-3, 2e-3, SeededBits(6))
        slow = ExactSource(6).publish(
            RealMatrix((2, 2), lambda bits, noise=noise: gram.at(bits) + noise.at(bits)), 2.0**exponent
        )
        assert np.array_equal(fast, slow)
