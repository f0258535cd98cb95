"""Noise for all rows of a unit together, and rules that know that a row can count as less than one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpgram
from dpgram.accounting.compose import GaussianCost
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.errors import MechanismError
from dpgram.mechanisms import looks, registry, whitened_noise, whitening
from dpgram.mechanisms.conversation import CountsQuestion, Drawing, GramAnswer, Task, hold
from dpgram.mechanisms.gaussian_noise import gram_sensitivity
from dpgram.mechanisms.noisy_inverse import inverse_sensitivity
from dpgram.planning.choose import choose
from dpgram.planning.forecast import listed
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import Round

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
BUDGET = Budget(1.0, 1e-6)
WHITENED = registry.MECHANISMS["whitened-noise"]
FOR_UNITS = {"gaussian-noise": {}, "whitened-noise": {}, "noisy-inverse": {"rho": 9.0}}
UNIT = arrays(float, (6, 4), elements=st.floats(-1, 1))


def panel(many: int = 4, **changes) -> dpgram.Schema:
    columns = [dpgram.Numeric(name, -1, 1, missing="midpoint") for name in ("x", "y", "z")]
    return dpgram.Schema(unit="person", columns=columns, unit_id="who", rows_per_unit=many, **changes)


def unit_gram(rows: np.ndarray, many: int, bound: float) -> np.ndarray:
    """What a unit adds: rows of norm ``bound`` at most, each with less weight where there are more than ``many`` of them."""
    rows = rows * (bound / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), bound))
    return min(1.0, many / len(rows)) * rows.T @ rows


# How far a unit moves sums, counts and inverses


@given(one=UNIT, other=UNIT, many=st.integers(1, 8))
def test_no_unit_moves_the_gram_further(one, other, many):
    first, second = unit_gram(one, many, 0.8), unit_gram(other, many, 0.8)
    assert np.linalg.norm(first) <= gram_sensitivity(0.8, ADD_REMOVE, many) * (1 + 1e-12)
    assert np.linalg.norm(first - second) <= gram_sensitivity(0.8, REPLACE, many) * (1 + 1e-12)


@pytest.mark.parametrize("many", [1, 3, 1000])
def test_units_attain_the_sensitivity(many):
    one, other = np.repeat(np.eye(2)[:1], many, axis=0), np.repeat(np.eye(2)[1:], 7 * many, axis=0)
    first, second = unit_gram(one, many, 1.0), unit_gram(other, many, 1.0)
    assert np.linalg.norm(first) == pytest.approx(gram_sensitivity(1.0, ADD_REMOVE, many), rel=1e-12)
    assert np.linalg.norm(first - second) == pytest.approx(gram_sensitivity(1.0, REPLACE, many), rel=1e-12)


@pytest.mark.parametrize(("neighbours", "moved"), [(REPLACE, 2), (ADD_REMOVE, 1)])
@pytest.mark.parametrize("many", [1, 5, 10**6])
@pytest.mark.parametrize("columns", [1, 30, 4096])
def test_counts_move_by_as_many_rows(neighbours, moved, many, columns):
    """A unit with all its rows in one bin of every column; if it is replaced, in another one."""
    exact = many * math.sqrt(moved * columns)
    assert exact <= looks.counts_sensitivity(columns, neighbours, many) <= exact * (1 + 1e-15)
    assert looks.look_shift(2.0, columns, neighbours, many) >= looks.counts_sensitivity(columns, neighbours, many) / 2


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("rho", "many"), [(0.5, 1), (3.0, 1), (3.0, 4), (20.0, 6), (0.5, 3), (1.0, 6), (0.1, 40)])
def test_no_unit_moves_the_inverse_further(rho, many, neighbours):
    bound, rng, dim = 1.3, np.random.default_rng(0), 4
    floor, room = (1 + rho) * bound**2, many * bound**2
    promised = inverse_sensitivity(bound, rho, neighbours, many)
    largest = 0.0
    for turn in range(3000):
        base = floor * np.eye(dim) + (turn % 2) * np.outer(*(2 * [rng.normal(size=dim)])) * rng.exponential()
        grams = []
        for _ in range(2):
            axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0] if turn % 3 else np.eye(dim)[rng.permutation(dim)]
            sizes = rng.dirichlet(np.full(dim, 10.0 ** rng.uniform(-2, 2)))
            grams.append((axes * (room * sizes)) @ axes.T)
        other = grams[1] if neighbours is REPLACE else np.zeros((dim, dim))
        moved = np.linalg.norm(np.linalg.inv(base + grams[0]) - np.linalg.inv(base + other))
        assert moved <= promised * (1 + 1e-12)
        largest = max(largest, moved)
    assert largest > 0.8 * promised or many > 2 * dim  # too few columns for so large a unit


@pytest.mark.parametrize(("rho", "many", "along"), [(3.0, 1, 1), (3.0, 4, 1), (1.0, 4, 2), (0.5, 3, 2)])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_units_attain_the_sensitivity_of_the_inverse(rho, many, along, neighbours):
    """Along one direction where the unit is small beside the claimed eigenvalue, else along several."""
    base = (1 + rho) * np.eye(4)
    one, other = np.zeros((4, 4)), np.zeros((4, 4))
    one[range(along), range(along)] = many / along
    if neighbours is REPLACE:
        other[range(3, 3 - along, -1), range(3, 3 - along, -1)] = many / along
    moved = np.linalg.norm(np.linalg.inv(base + one) - np.linalg.inv(base + other))
    assert moved == pytest.approx(inverse_sensitivity(1.0, rho, neighbours, many), rel=1e-12)


# Which mechanisms take units, and what their noise is then


@pytest.mark.parametrize("name", registry.MECHANISMS)
@pytest.mark.parametrize("many", [1, 4])
def test_other_mechanisms_refuse_ids_in_words(name, many):
    mechanism = registry.find(name)
    if name in FOR_UNITS:
        assert registry.schema_task(mechanism, BUDGET, panel(many), options=FOR_UNITS[name]).rows_per_unit == many
        with pytest.raises(MechanismError, match="printed formulas are for one row per unit"):
            registry.schema_task(mechanism, BUDGET, panel(many), "paper", FOR_UNITS[name])
    else:
        with pytest.raises(MechanismError, match=f"{name} protects single rows.* use gaussian-noise or whitened-noise"):
            registry.schema_task(mechanism, BUDGET, panel(many))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", ["gaussian-noise", "whitened-noise"])
def test_noise_is_as_many_times_as_large(name, neighbours):
    mechanism = registry.find(name)
    tasks = []
    for many in (1, 4):
        hint = {"table_rows": 10_000 * many} if "table_rows" in mechanism.options else {}  # so that the rules are the same
        tasks.append(registry.schema_task(mechanism, BUDGET, panel(many, neighbours=neighbours), options=hint))
    first, second = (mechanism.calibrate(task) for task in tasks)
    assert first["mu"] == pytest.approx(second["mu"], rel=1e-12)
    assert second["delta_at_epsilon"] <= BUDGET.delta
    sds = [key for key in first if "sd" in key]
    assert sds
    for key in sds:
        assert second[key] == pytest.approx(4 * first[key], rel=1e-9), key


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("many", [1, 3, 50])
def test_looks_and_rounds_of_units_spend_the_budget_and_no_more(neighbours, many):
    """The sum of squares of all shifts, each computed anew from the noise that was drawn, is mu^2; and the ledger is told as much."""
    schema = replace(panel(many, neighbours=neighbours), columns=[dpgram.Numeric("x", -9, 9), dpgram.Numeric("y", -1e6, 1e6)])
    task = replace(registry.schema_task(WHITENED, Budget(4.0, 1e-6), schema, options={"table_rows": 1e6 * many}), units=10**6)
    mu, spent, drawn = calibrate_mu(task.budget), [0.0], []

    def answer(question):
        if isinstance(question, CountsQuestion):
            asked.append(("look", len(question.bins.inner)))
            size = question.bins.packed(np.zeros(sum(len(inner) + 1 for inner in question.bins.inner.values()))).shape[0]
            return GramAnswer(np.zeros((size, size)), None)
        asked.append(("round", 1))
        eye = 1e6 * np.eye(task.dim)
        return GramAnswer(eye, None, tuple(0 * eye for _ in question.scales[1:]))

    asked: list[tuple[str, int]] = []
    made = hold(WHITENED.start(task, SeededSource(0)), answer, drawn.append)
    for place, (_, columns) in enumerate((each for each in asked if each[0] == "look"), 1):
        moved = many * math.sqrt(columns * (2 if neighbours is REPLACE else 1))
        spent.append(moved / made.parameters[f"look_{place}_sd"])
    assert len(spent) > 1
    for place in range(1, int(made.parameters["rounds"]) + 1):
        moved = many * (math.sqrt(2) if neighbours is REPLACE else 1.0)
        spent.append(moved / (math.sqrt(2) * made.parameters[f"round_{place}_sd_off_diagonal"]))
    total = math.hypot(*spent)
    assert total <= mu * (1 + 1e-12)
    assert total == pytest.approx(mu, rel=1e-9)
    assert gaussian_delta(4.0, total) <= 1e-6
    for place, said in enumerate(drawn, 1):
        assert isinstance(said, Drawing)
        assert isinstance(said.spent, GaussianCost)
        assert said.spent.mu >= math.hypot(*spent[: place + 1]) * (1 - 1e-12)


def test_rounds_without_looks_announce_what_units_spend():
    task = registry.schema_task(WHITENED, BUDGET, panel(3), options={"table_rows": 30_000, "looks": "none"})
    drawn = []
    gram = 3e4 * np.eye(task.dim)
    made = hold(
        WHITENED.start(task, SeededSource(0)),
        lambda question: GramAnswer(gram, None, tuple(0 * gram for _ in question.scales[1:])),
        drawn.append,
    )
    shifts = [3 / made.parameters[f"round_{place}_sd_off_diagonal"] for place in range(1, len(drawn) + 1)]
    assert [each.spent.mu for each in drawn] == pytest.approx(
        [math.hypot(*shifts[:place]) for place in range(1, len(drawn) + 1)]
    )


def test_a_ledger_is_told_all_where_a_unit_leaves_but_one_round():
    """With fifty rows a unit the rules have one round, which may be the second drawing; for single rows they have more."""
    task = Task(BUDGET, REPLACE, dim=12, row_bound=3.0, intercept=True)
    several, mu, rows = replace(task, rows_per_unit=50), calibrate_mu(BUDGET), 5000.0
    assert len(whitened_noise.rules_for(several, rows, mu).shares) == 1 < len(whitened_noise.rules_for(task, rows, mu).shares)
    assert looks.noted_shift(2, 0.1 * mu, mu, several, rows) == mu
    assert looks.noted_shift(2, 0.1 * mu, mu, task, rows) < mu


def test_what_a_ledger_is_told_is_rounded_up():
    """The share of the budget, as a fraction, is at most the square of what is noted, over that of mu."""
    task = Task(BUDGET, REPLACE, dim=12, row_bound=3.0, intercept=True)
    for rows in (2000.0, 5000.0, 70_000.0):
        for mu in np.random.default_rng(0).uniform(0.05, 3.0, size=20).tolist():
            lefts = (mu, mu * math.sqrt(1 - looks.MOST_SPENT))
            fewest = min(len(whitened_noise.rules_for(task, rows, left).shares) for left in lefts)
            for place in range(2, fewest + 1):
                share = Fraction(looks.MOST_SPENT) + Fraction(place - 1, fewest)
                noted = Fraction(looks.noted_shift(place, 0.01, mu, task, rows))
                assert noted**2 >= min(1, share) * Fraction(mu) ** 2
                assert noted**2 <= min(1, share) * Fraction(mu) ** 2 * (1 + Fraction(1, 2**48))


def test_the_rules_weigh_the_noise_of_a_unit_against_single_rows():
    """Fifty rows a unit with fifty times the rows have the rules of one; with as many rows, those of a smaller budget."""
    task = Task(BUDGET, REPLACE, dim=12, row_bound=3.0, intercept=True)
    mu, rows = calibrate_mu(BUDGET), 20_000.0
    one = whitened_noise.rules_for(task, rows, mu)
    several = whitened_noise.rules_for(replace(task, rows_per_unit=50), 50 * rows, mu)
    assert one.shares == several.shares
    assert one.clip(0, 12, rows) == pytest.approx(several.clip(0, 12, 50 * rows))
    assert len(whitened_noise.rules_for(replace(task, rows_per_unit=50), rows, mu).shares) != len(one.shares)


def test_the_number_of_units_says_how_many_rows_there_may_be():
    task = registry.schema_task(WHITENED, BUDGET, panel(5))
    assert whitened_noise.hinted_rows(task) is None
    assert whitened_noise.hinted_rows(replace(task, units=300)) == 1500.0
    hinted = registry.schema_task(WHITENED, BUDGET, panel(5), options={"table_rows": 700})
    assert whitened_noise.hinted_rows(replace(hinted, units=300)) == 700.0
    assert WHITENED.calibrate(hinted)["table_rows"] == 700.0


def test_without_an_intercept_the_number_of_rows_must_be_guessed():
    task = registry.schema_task(WHITENED, BUDGET, panel(5, intercept=False))
    with pytest.raises(MechanismError, match="With a unit_id this number is protected"):
        WHITENED.calibrate(task)
    assert WHITENED.calibrate(replace(task, units=300))["rounds"] >= 1


def test_auto_and_plan_compare_only_mechanisms_that_take_units():
    assert listed(None, schema=panel()) == ["gaussian-noise", "whitened-noise"]
    assert listed(None, {"rho": 3.0}, panel()) == ["gaussian-noise", "noisy-inverse", "whitened-noise"]
    assert len(listed(None, schema=replace(panel(), unit_id=None, rows_per_unit=None))) == 7
    chosen, why = choose(panel(), 5000, BUDGET)
    assert chosen.name in FOR_UNITS
    assert "sketch" not in why
    chosen, why = choose(panel(), None, BUDGET)
    assert chosen is WHITENED
    assert "protected with a unit_id" in why


# Rows that count as less than one


def seen_rounds(counts, sds=(1.0,), sampled=(1.0,), short=1.0):
    """Rounds that counted so many rows, of which none is clipped if they are ``short``."""
    return [
        Round(short * np.eye(2), short**2 * np.diag([count * share, 1.0]), short**2 * sd, 1.0, sampled=share)
        for count, sd, share in zip(counts, itertools.cycle(sds), itertools.cycle(sampled))
    ]


@pytest.mark.parametrize("count", [whitening.count_so_far, whitening.final_count])
def test_how_many_rows_count_is_read_off_what_was_published(count):
    task = Task(BUDGET, REPLACE, dim=2, row_bound=2.0, intercept=True)
    partly = replace(task, counts_partly=True)
    seen = seen_rounds([50.0, 690.0, 700.0], short=0.1)
    assert count(seen, 1000.0, task) == 1000.0
    assert count(seen, 1000.0, partly) == pytest.approx(700.0)
    assert [r.kept for r in whitening.weighed(seen, 700.0)] == pytest.approx([50 / 700, 69 / 70, 1.0])
    assert count(seen, None, replace(task, neighbours=ADD_REMOVE)) == pytest.approx(700.0)
    assert count(seen_rounds([50.0, 1090.0], short=0.1), 1000.0, replace(partly, rows=1000)) == 1000.0
    assert count(seen_rounds([50.0, 1090.0], short=0.1), 1000.0, replace(partly, units=30, rows_per_unit=20)) == 600.0


@pytest.mark.parametrize("count", [whitening.count_so_far, whitening.final_count])
def test_a_noisy_count_of_a_sample_does_not_pass_for_rows(count):
    partly = Task(BUDGET, ADD_REMOVE, dim=2, row_bound=2.0, intercept=True, counts_partly=True)
    noisy = [*seen_rounds([900.0], [50.0], [0.1]), *seen_rounds([700.0], short=0.1)]
    assert whitening.count_sd(noisy[0]) > 500
    assert count(noisy, None, partly) == pytest.approx(700.0)
    clear = [*seen_rounds([900.0], [1.0]), *seen_rounds([700.0], short=0.1)]
    assert 890 < count(clear, None, partly) < 900


def clipped_rounds():
    """Two rounds of 5 columns, of which the last published in an outer matrix what it took: 100 rows."""
    gram, scales = np.diag([1000.0, 20, 20, 20, 20]), (1.0, 4.0, 16.0)
    first, last = (Round(0.2 * np.eye(5), 0.04 * gram, 0.01, 1.0) for _ in range(2))
    return [first, replace(last, outer=(np.diag([1.0, 8, 8, 8, 8]), np.zeros((5, 5))), scales=scales)]


@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
def test_what_the_last_round_clipped_counts_in_the_end(neighbours):
    partly = Task(BUDGET, neighbours, dim=5, row_bound=2.0, intercept=True, counts_partly=True)
    seen = clipped_rounds()
    assert whitening.count_so_far(seen, None, partly) == pytest.approx(1000.0)
    count = whitening.final_count(seen, None, partly)
    assert count == pytest.approx(1100.0, abs=5)
    made = whitening.finished(seen, None, partly)
    assert made.gram[0, 0] == pytest.approx(count)
    assert made.noise.last.kept == pytest.approx(1000 / count)
    assert whitening.finished(seen, 1050.0, replace(partly, rows=1050)).gram[0, 0] == pytest.approx(1050.0)
    every = Task(
        BUDGET, ADD_REMOVE, dim=5, row_bound=2.0, intercept=True
    )  # every row counts as one, but their number is protected
    assert whitening.final_count(seen, None, every) == pytest.approx(count)


def test_the_spread_of_a_count_is_that_of_its_noise():
    """Through a map that is not symmetric: a count is e0' T^-1 N T^-T e0."""
    rng = np.random.default_rng(0)
    through = rng.normal(size=(3, 3))
    upper = np.triu(rng.normal(size=(20_000, 3, 3)), 1)
    noise = upper + upper.mT + math.sqrt(2) * rng.normal(size=(20_000, 3))[:, :, None] * np.eye(3)
    back = np.linalg.inv(through)
    found = np.std(np.einsum("i,nij,j->n", back[0], noise, back[0]))
    large = Round(through, through @ np.diag([1e9, 1, 1]) @ through.T, 1.0, 1.0)
    assert whitening.count_sd(large) == pytest.approx(found, rel=0.03)


def test_the_spread_of_a_count_from_a_sample_is_that_of_the_coins_too():
    """Of 1,000 rows, 100 or so are in the sample, and each stands for ten."""
    sampled, rows = 0.1, 1000.0
    kept = np.random.default_rng(0).binomial(int(rows), sampled, size=200_000) / sampled
    seen = Round(np.eye(2), np.diag([rows * sampled, 1.0]), 1e-9, 1.0, sampled=sampled)
    assert whitening.counted(seen) == pytest.approx(rows)
    assert whitening.count_sd(seen) == pytest.approx(np.std(kept), rel=0.02)
    assert whitening.count_sd(replace(seen, sampled=1.0, gram=np.diag([rows, 1.0]))) < 1e-6


def test_half_the_range_of_an_intercept_is_nothing_and_of_what_is_not_declared_one():
    task = Task(BUDGET, REPLACE, dim=3, row_bound=2.0, intercept=True)
    assert task.spans == (0.0, 1.0, 1.0)
    assert replace(task, intercept=False).spans == (1.0, 1.0, 1.0)
    assert replace(task, half_ranges=(0.0, 2.0, 3.0)).spans == (0.0, 2.0, 3.0)


def test_maps_take_the_guess_until_rounds_have_counted():
    partly = Task(BUDGET, REPLACE, dim=2, row_bound=2.0, intercept=True, counts_partly=True)
    assert whitening.steering_count(seen_rounds([50.0]), 1000.0, partly) == 1000.0  # the first round clips most rows
    assert 600 < whitening.steering_count(seen_rounds([50.0, 600.0]), 1000.0, partly) < 610
    assert whitening.steering_count(seen_rounds([50.0, 600.0]), None, partly) == 600.0
    assert whitening.steering_count(seen_rounds([50.0, 600.0]), 1000.0, replace(partly, counts_partly=False)) == 1000.0
