"""Bit by bit: what an exact release can reach is the same for neighbouring tables, and its lowest bits say nothing about either.

Every published number is a multiple k of the declared step. The noise is 2^24 steps wide, so the last four bits of k are uniform, up to a
part in 10^7, whatever the table. A chi-square test of each table, and one of both against each other, are wrong with probability
FALSE_ALARM each; the mistakes that are planted below show what they see."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from itertools import count

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import dpgram
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.base import grid_step
from dpgram.sampling.exact import ExactSource
from tests.attacks.attacks import LearnedBits
from tests.attacks.releases import NEEDED, allowed, released, task_for, upper

FALSE_ALARM = 1e-9
RELEASES = 250  # of each table; an adaptive mechanism calibrates anew each time
FEWER = {"whitened-noise": 50}  # each has as many matrices as rounds
EPSILON = 1.0
LAST = 16  # the last four bits


class Recording(ExactSource):
    """Keeps every matrix that was rounded and its step, also where another matrix is made of it afterwards."""

    def __init__(self, seed):
        super().__init__(seed)
        self.rounded = []

    def publish(self, matrix, step):
        self.rounded.append((super().publish(matrix, step), step))
        return self.rounded[-1][0]


def tables(name):
    """The Grams of neighbouring tables whose entries have bits far below the grid: fractions of 2^-20 go into the rows."""
    rows = np.rint(np.random.default_rng(7).uniform(-1, 1, size=(30, 4)) * 2**20) / 2**20
    common = rows[:-1].T @ rows[:-1] + (40 * np.eye(4) if name == "noisy-inverse" else 0)  # its claim has to be true
    return common, common + np.outer(rows[-1], rows[-1])


def wholes(name, which, releases=RELEASES):
    """(releases, numbers): the multiples that were published; raises unless each number is one."""
    asked, gram, seeds = task_for(name, EPSILON), tables(name)[which], count(releases * which)
    found = []
    for _ in range(releases):
        source = Recording(next(seeds))
        outcome = released(name, asked, gram, source)
        if name == "whitened-noise":
            published = [each.sd_off_diagonal for each in outcome.noise.rounds for _ in each.scales]
            assert [grid_step(sd) for sd in published] == [step for _, step in source.rounded]
        else:
            ((_, step),) = source.rounded
            assert outcome.grid == step or (name == "noisy-inverse" and outcome.parameters["grid_of_inverse"] == step)
        multiples = np.concatenate([upper(matrix) / step for matrix, step in source.rounded])
        assert np.array_equal(multiples, np.rint(multiples))
        assert not any(np.signbit(matrix[matrix == 0]).any() for matrix, _ in source.rounded)  # no negative zero
        if outcome.grid is not None:
            assert np.array_equal(outcome.gram / step, np.rint(outcome.gram / step))
            assert not np.signbit(outcome.gram[outcome.gram == 0]).any()
        found.append(multiples.astype(np.int64))
    return np.array(found)


def is_uniform(bits):
    """Whether the counts of the last bits look uniform."""
    counts = np.bincount(bits.ravel() % LAST, minlength=LAST)
    expected = counts.sum() / LAST
    return np.sum((counts - expected) ** 2) / expected < chi2.isf(FALSE_ALARM, LAST - 1)


def are_alike(first, second):
    """Whether the last bits of two tables look as if they had one law."""
    counts = [np.bincount(bits.ravel() % LAST, minlength=LAST) for bits in (first, second)]
    return chi2_contingency(np.array(counts)[:, np.sum(counts, axis=0) > 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_the_lowest_bits_are_uniform_and_the_same_for_neighbours(name):
    many = FEWER.get(name, RELEASES)
    first, second = wholes(name, 0, many), wholes(name, 1, many)
    assert is_uniform(first)
    assert is_uniform(second)
    assert are_alike(first, second)
    # The same question as an attack, which may use the bits of every entry together; learned on one half, asked on the other.
    half = many // 2
    attack = LearnedBits(first[:half] % 64.0, second[:half] % 64.0)
    right = np.sum(attack(first[half:] % 64.0) == 0) + np.sum(attack(second[half:] % 64.0) == 1)
    assert right <= allowed(2 * (many - half), EPSILON, FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_so_they_are_in_many_releases(name):
    """Ten times as many."""
    many = 10 * FEWER.get(name, RELEASES)
    first, second = wholes(name, 0, many), wholes(name, 1, many)
    assert is_uniform(first)
    assert is_uniform(second)
    assert are_alike(first, second)


def noise(releases=RELEASES):
    """Noise of 2^24 steps, as floats in units of the step."""
    return np.random.default_rng(3).normal(scale=2.0**24, size=(2, releases, 10))


def residues(which):
    """The Gram over the grid of gaussian-noise: what is left of it below one step."""
    step = released("gaussian-noise", task_for("gaussian-noise", EPSILON), tables("")[0], ExactSource(0)).grid
    return upper(tables("")[which]) / step


def test_noise_that_is_rounded_before_it_is_added_would_be_seen():
    """A known mistake: the bits below the grid are then those of the table."""
    finer = [np.rint((residues(which) + np.rint(noise()[which])) * LAST).astype(np.int64) for which in (0, 1)]
    assert not is_uniform(finer[0])
    assert not are_alike(*finer)
    attack = LearnedBits(*(numbers[:100] % 64.0 for numbers in finer))
    right = sum(int(np.sum(attack(numbers[100:] % 64.0) == which)) for which, numbers in enumerate(finer))
    assert right > allowed(2 * (RELEASES - 100), EPSILON, FALSE_ALARM)


def test_a_parity_that_follows_the_table_would_be_seen():
    """k is even where the entry of the table is, in whole steps: uniform in neither table, and another law in each."""
    numbers = [(2 * np.rint(noise()[which] / 2) + np.floor(residues(which)) % 2).astype(np.int64) for which in (0, 1)]
    assert not is_uniform(numbers[0]) or not is_uniform(numbers[1])
    attack = LearnedBits(*(each[:100] % 64.0 for each in numbers))
    assert sum(int(np.sum(attack(each[100:] % 64.0) == which)) for which, each in enumerate(numbers)) == 2 * (RELEASES - 100)


def test_a_grid_that_follows_the_table_would_be_seen():
    """A step taken from the largest entry of the table: between 31 and 33 it doubles."""
    numbers = [np.rint(noise()[which] / step).astype(np.int64) * step for which, step in ((0, 1), (1, 2))]
    assert is_uniform(numbers[0])
    assert not is_uniform(numbers[1])
    assert not are_alike(*numbers)


def released_file(rows, path, mechanism="gaussian-noise"):
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(c, -1, 1) for c in "abc"], neighbours="add-remove")
    made = dpgram.release(rows, schema, epsilon=1.0, delta=1e-6, columns=list("abc"), mechanism=mechanism, arithmetic="exact",
                          **NEEDED.get(mechanism, {}))  # fmt: skip
    made.save(path)
    return made, path.read_bytes()


ONE_WAY = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?")


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_the_bytes_of_the_file_are_a_function_of_the_numbers_alone(mechanism, tmp_path):
    """Each number is written in the shortest way that gives it back; all else in the file is the same for neighbouring tables."""
    rows = np.random.default_rng(2).uniform(-1, 1, size=(200, 3))
    one, bytes_of_one = released_file(rows, tmp_path / "one.json", mechanism)
    other, bytes_of_other = released_file(rows[:-1], tmp_path / "other.json", mechanism)
    for content, release in ((bytes_of_one, one), (bytes_of_other, other)):
        text = content.decode()
        printed = re.split(r"[\[\],\s]+", text[text.rindex('"gram"') + 7 :].strip("}] \n:"))
        printed = [word for word in printed if word]
        assert len(printed) == release.gram.size
        for word, number in zip(printed, release.gram.ravel().tolist(), strict=True):
            assert ONE_WAY.fullmatch(word)
            assert float(word) == number
            assert not (number == 0 and word.startswith("-"))
            digits = word.partition("e")[0].replace("-", "").replace(".", "").strip("0")
            assert len(digits) <= len(repr(number).partition("e")[0].replace("-", "").replace(".", "").strip("0")) <= 17
    from_other = dataclasses.replace(one, gram=other.gram, parameters=other.parameters, noise=other.noise, grid=other.grid)
    from_other.save(tmp_path / "made.json")
    assert (tmp_path / "made.json").read_bytes() == bytes_of_other
    more = "adaptive" in mechanism or mechanism in (
        "wishart-noise",
        "whitened-noise",
    )  # numbers that carry noise, or follow from it
    released_things = {"gram", "grid", "noise", "mechanism"} if more else {"gram"}
    left = [
        {k: v for k, v in json.loads(content).items() if k not in released_things} for content in (bytes_of_one, bytes_of_other)
    ]
    assert left[0] == left[1]
    assert one.grid is None or math.frexp(one.grid)[0] == 0.5
