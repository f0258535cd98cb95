"""The whitened release: the law of its noise round by round, its total cost, and that it looks at nothing but what it has published."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2, norm

import dpgram
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.audits.draws import releases
from dpgram.audits.laws.registry import law_of
from dpgram.audits.neighbours import Pair, Rows
from dpgram.audits.replay import faults_of_replay
from dpgram.errors import MechanismError
from dpgram.mechanisms import registry, whitened_noise
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.rows.clip import GRID, mapped
from dpgram.sampling.base import EXACT, exact_gram, grid_step
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours

FALSE_ALARM = 1e-9  # per case, when the code is right
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
WHITENED = MECHANISMS["whitened-noise"]


def task(dim, *, epsilon=1.0, delta=1e-6, neighbours=REPLACE, bound=None, hint=None, intercept=True):
    row_bound = math.sqrt(dim) if bound is None else bound
    return registry.task(
        WHITENED, Budget(epsilon, delta), neighbours, dim, row_bound, "exact", {"table_rows": hint}, intercept=intercept
    )


def table(rows=400, dim=4, seed=0):
    """Rows with an intercept, two of whose columns are strongly correlated."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, dim))
    x[:, 0] = 1.0
    if dim > 2:
        x[:, 2] = 0.95 * x[:, 1] + 0.05 * x[:, 2]
    return x


class Told(NamedTuple):
    outcome: object
    questions: list
    announced: list


def release(x, asked, source):
    """A release of these rows, mapped as the engines do it."""
    questions, announced = [], []

    def answer(question):
        questions.append(question)
        made = mapped(np.asfortranarray(x.T), question.row_bound, question.through, question.scales)
        whole = [points @ points.T for points in (made.points, *made.outer)]
        rows = len(x) if asked.neighbours is REPLACE else None
        if source.arithmetic == EXACT:
            gram, *outer = (exact_gram(each.astype(np.int64), -40) for each in whole)
        else:
            gram, *outer = (each / GRID**2 for each in whole)
        return GramAnswer(gram, rows, tuple(outer))

    return Told(hold(WHITENED.start(asked, source), answer, announced.append), questions, announced)


# What it costs.


def delta_by_integral(epsilon, mu):
    """The hockey-stick divergence of N(mu, 1) and N(0, 1), from their densities."""
    cut = epsilon / mu + mu / 2

    def excess(x):
        return norm.pdf(x - mu) * -math.expm1(min(0.0, epsilon - mu * x + mu**2 / 2))

    return quad(excess, cut, cut + 12, epsabs=0, epsrel=1e-10, limit=400)[0]


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-15), (0.1, 1e-4), (1, 1e-6), (5, 1e-9), (20, 1e-15), (20, 0.1)])
@pytest.mark.parametrize("hint", [10, 1000, 10**7, None])
def test_all_rounds_together_use_the_whole_budget_and_no_more(neighbours, epsilon, delta, hint):
    asked = task(4, epsilon=epsilon, delta=delta, neighbours=neighbours, hint=hint)
    told = release(table(), asked, SeededSource(1))
    rounds = told.outcome.noise.rounds
    assert told.outcome.parameters["rounds"] == len(rounds) == len(told.announced)
    planned = WHITENED.calibrate(asked).get("rounds", 0)  # where it is wrong about a single round, that is asked for again
    assert len(told.questions) == len(rounds) + ((planned == 1) != (len(rounds) == 1))
    apart = {REPLACE: math.sqrt(2), ADD_REMOVE: 1.0}[neighbours]  # of the Grams of rows of norm one
    shifts = [apart / (math.sqrt(2) * each.sd_off_diagonal) for each in rounds]
    total = math.sqrt(sum(shift**2 for shift in shifts))
    assert delta * (1 - 1e-6) <= delta_by_integral(epsilon, total) <= delta * (1 + 1e-8)
    assert total == pytest.approx(told.outcome.parameters["mu"], rel=1e-12)
    assert total <= calibrate_mu(asked.budget)
    for place, said in enumerate(told.announced, 1):
        assert (said.number, said.rounds) == (place, len(rounds))
        assert said.spent.mu == pytest.approx(math.sqrt(sum(shift**2 for shift in shifts[:place])), rel=1e-12)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_what_is_released_is_what_was_calibrated(neighbours):
    """To the last digit, where the number of rows is known beforehand; otherwise the total alone is told, from above."""
    x = table()
    asked = task(4, neighbours=neighbours, hint=len(x))
    told, found = release(x, asked, SeededSource(1)).outcome.parameters, WHITENED.calibrate(asked)
    assert {name: told[name] for name in found} == found
    unknown = WHITENED.calibrate(task(4))
    assert set(unknown) == {"mu", "delta_at_epsilon"}
    assert unknown["mu"] >= told["mu"] >= unknown["mu"] * (1 - 1e-12)


def test_a_guess_that_the_rules_followed_is_on_the_label():
    asked = task(4, neighbours=ADD_REMOVE, hint=500)
    assert release(table(), asked, SeededSource(1)).outcome.parameters["table_rows"] == 500
    assert "table_rows" not in release(table(), task(4, neighbours=ADD_REMOVE), SeededSource(1)).outcome.parameters
    assert (
        "table_rows" not in release(table(), task(4, hint=500), SeededSource(1)).outcome.parameters
    )  # the table's own was known


def test_every_round_asks_for_rows_of_norm_one_through_the_map_that_it_publishes():
    told = release(table(), task(4), SeededSource(2))
    for question, each in zip(told.questions, told.outcome.noise.rounds, strict=True):
        assert question.row_bound == 1.0
        assert question.scales == each.scales
        assert len(each.outer) == len(each.scales) - 1
        assert len(each.scales) == 1 or each is told.outcome.noise.last
        assert np.array_equal(question.through.matrix, each.through)
        assert question.questions in (None, len(told.questions))
    last = told.outcome.noise.last
    assert last.through @ told.outcome.gram @ last.through.T * last.kept == pytest.approx(last.gram, rel=1e-9, abs=1e-9)


# The law of the noise.


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (0.98, False), (1.02, False)])
def test_the_noise_of_every_round_has_the_promised_scale(neighbours, scale, accepted):
    """Sees 2 % in one round: 13 sd at 180,000 degrees of freedom. Many at once, with quick maps; the noise does not ask who made them."""
    dim, draws = 3, 30_000
    asked = task(dim, neighbours=neighbours, hint=2000)
    rows = Rows(table(6, dim), np.full(6, 333.0))
    many = releases(law_of(WHITENED.name)(asked, {}).many_at_once(WHITENED), asked, rows, SeededSource(3), draws)
    for each in many.noise.rounds:
        sums = rows.grams(each.through, each.scales)
        for matrix, true in zip((each.gram, *each.outer), sums, strict=True):
            assert inside((matrix - true) / (scale * each.sd_off_diagonal)) == accepted
    assert len(many.noise.last.outer) == 2


def inside(noise):
    """Whether symmetric matrices have entries of sd 1 off the diagonal and sqrt(2) on it, by the sum of all squares and of either kind."""
    draws, dim, _ = noise.shape
    off = np.sum(np.triu(noise, 1) ** 2)
    on = np.sum(np.diagonal(noise, axis1=1, axis2=2) ** 2) / 2
    counts = [(off, draws * dim * (dim - 1) // 2), (on, draws * dim), (off + on, draws * dim * (dim + 1) // 2)]
    return all(chi2.ppf(FALSE_ALARM / 6, dof) < total < chi2.isf(FALSE_ALARM / 6, dof) for total, dof in counts if dof)


@pytest.mark.parametrize("make", [SeededSource, ExactSource], ids=["float", "exact"])
def test_the_noise_has_that_scale_with_its_own_maps_and_rows_in_whole_numbers(make):
    """Sees three tenths: 60 releases of 2 columns and all their rounds, against sums made by the engine's rule."""
    x, asked, source = table(300, 2), task(2, epsilon=3.0), make(5)
    noise = []
    for _ in range(60):
        told = release(x, asked, source)
        for question, each in zip(told.questions, told.outcome.noise.rounds, strict=True):
            made = mapped(np.asfortranarray(x.T), 1.0, question.through, question.scales)
            for matrix, points in zip((each.gram, *each.outer), (made.points, *made.outer), strict=True):
                noise.append((matrix - points @ points.T / GRID**2) / each.sd_off_diagonal)
    assert inside(np.array(noise))
    assert len(noise) >= 120  # several rounds
    assert not inside(1.3 * np.array(noise))


def test_exact_rounds_lie_on_their_grids():
    """And use them: of the numbers of a whole release, as multiples of their grid, some are odd."""
    odd = 0
    for each in release(table(), task(4), ExactSource(6)).outcome.noise.rounds:
        for matrix in (each.gram, *each.outer):
            whole = matrix / grid_step(each.sd_off_diagonal)
            assert np.array_equal(whole, np.rint(whole))
            odd += int(np.sum(whole % 2))
    assert odd > 0


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_starved_precision_publishes_the_same_bits(neighbours):
    x, asked = table(), task(4, neighbours=neighbours)
    starved, generous = (release(x, asked, ExactSource(7, first_bits=bits)).outcome for bits in (8, 512))
    assert starved.noise == generous.noise
    assert np.array_equal(starved.gram, generous.gram)
    assert starved.parameters == generous.parameters


# What it looks at.

CELLS = st.floats(-1, 1, width=16)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6),
    one=st.tuples(CELLS, CELLS),
    other=st.tuples(CELLS, CELLS),
    neighbours=st.sampled_from(list(Neighbours)),
    hint=st.sampled_from([None, 1, 500, 10**6]),
    epsilon=st.sampled_from([0.05, 1.0, 10.0]),
    times=st.sampled_from([1, 30, 10**4]),
)
def test_neighbours_of_which_the_same_is_published_are_treated_alike(rows, one, other, neighbours, hint, epsilon, times):
    """Maps, clips, shares, the number of rounds, what a ledger is told: all are functions of what was published and of public numbers."""
    common, counts = [(1.0, *cells) for cells in rows], [times] * len(rows)
    first = Rows(np.array([*common, (1.0, *one)]), np.array([*counts, 1]))
    if neighbours is ADD_REMOVE:
        second = Rows(np.array(common), np.array(counts))
    else:
        second = Rows(np.array([*common, (1.0, *other)]), np.array([*counts, 1]))
    asked = task(3, epsilon=epsilon, neighbours=neighbours, hint=hint)
    assert faults_of_replay(WHITENED, asked, Pair("neighbours", first, second), SeededSource(8)) == []


def test_a_look_at_the_rows_would_be_seen():
    """A conversation that takes its number of rows from the sum of its first question, where it is protected."""

    def curious(task, rng):
        conversation = WHITENED.start(task, rng)
        try:
            said = next(conversation)
            while True:
                heard = yield said
                if heard is not None:
                    heard = replace(heard, rows=int(np.trace(heard.gram) * 1000))
                said = conversation.send(heard)
        except StopIteration as end:
            return end.value

    asked = task(3, neighbours=ADD_REMOVE)
    one, two = (Rows(table(30 + more, 3), np.full(30 + more, 20.0)) for more in (1, 0))
    pair = Pair("one row more", one, two)
    assert faults_of_replay(WHITENED, asked, pair, SeededSource(9)) == []
    assert faults_of_replay(replace(WHITENED, start=curious), asked, pair, SeededSource(9)) != []


# Tables and budgets at the edge.


def edge_tables():
    plain = table(60, 5)
    constant, twice, faint = plain.copy(), plain.copy(), plain.copy()
    constant[:, 3] = 0.25
    twice[:, 4] = twice[:, 1]
    faint[:, 1:] *= np.logspace(-3, -7, 4)
    return {
        "one column": np.ones((60, 1)),
        "one row": plain[:1],
        "fewer rows than columns": plain[:3],
        "a constant column": constant,
        "a column twice": twice,
        "an intercept and nothing else": np.column_stack([np.ones(60), np.zeros((60, 4))]),
        "zeros": np.zeros((60, 5)),
        "no row": np.zeros((0, 5)),
        "faint columns": faint,
        "one long row": np.vstack([1e-3 * plain, np.ones((1, 5))]),
    }


EDGES = edge_tables()


@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("times", [1, 10**5])
def test_every_table_gives_finite_maps_and_a_finite_symmetric_release(case, neighbours, times):
    """Whatever the budget, the bound and the hint; each row is there once, or so often that noise is nothing beside it."""
    x = EDGES[case]
    rows = Rows(x, np.full(len(x), float(times)))
    if not len(x) and neighbours is REPLACE:
        return  # the curator refuses an empty table whose number of rows is public
    seed = 0
    for epsilon, delta in ((0.01, 1e-15), (1.0, 1e-6), (20.0, 1e-15), (20.0, 0.1)):
        for bound in (math.sqrt(x.shape[1]), 1e8):
            for hint in (None, 1, 10**6, 10**12) if neighbours is ADD_REMOVE else (None,):
                seed += 1
                asked = task(x.shape[1], epsilon=epsilon, delta=delta, neighbours=neighbours, bound=bound, hint=hint)
                outcome = hold(
                    WHITENED.start(asked, SeededSource(seed)), lambda question, asked=asked: rows.answer(question, asked)
                )
                assert np.isfinite(outcome.gram).all()
                assert np.array_equal(outcome.gram, outcome.gram.T)
                for each in outcome.noise.rounds:
                    assert np.isfinite(each.through).all()
                    assert np.linalg.cond(each.through) < 1e8  # so it can be undone
                    assert 0 < each.kept <= 1


def test_what_it_cannot_do_is_refused_in_words():
    with pytest.raises(MechanismError, match="table_rows is 0 and must be a number of rows, 1 or more"):
        WHITENED.calibrate(task(3, hint=0, neighbours=ADD_REMOVE))
    with pytest.raises(MechanismError, match="not in the paper. Use calibration='exact'"):
        WHITENED.calibrate(replace(task(3), calibration="paper"))
    with pytest.raises(MechanismError, match="at most 2048 encoded columns, but there are 2049"):
        WHITENED.calibrate(task(2049))
    with pytest.raises(MechanismError, match="Give a public guess"):
        WHITENED.calibrate(task(3, neighbours=ADD_REMOVE, intercept=False))
    assert WHITENED.calibrate(task(3, neighbours=ADD_REMOVE, intercept=False, hint=50))["rounds"] >= 1


def test_sds_are_rounded_to_the_private_side():
    shares = (0.1, 0.2, 0.7)
    for neighbours in Neighbours:
        for mu in np.random.default_rng(0).uniform(1e-3, 10, 200):
            sds = whitened_noise.round_sds(float(mu), shares, neighbours, 1)
            assert whitened_noise.total_shift(sds, neighbours, 1) <= mu * (1 + 1e-15)


def test_a_guess_of_the_rows_stands_in_the_release():
    """The rules followed it, so whoever reads the release must see it; without one, and where the rows are public, there is none."""
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", -1, 1)], neighbours=Neighbours.ADD_REMOVE)
    table, budget = (
        {"x": np.linspace(-1, 1, 400)},
        {"epsilon": 1.0, "delta": 1e-6, "mechanism": "whitened-noise", "insecure_seed": 0},
    )
    assert dpgram.release(table, schema, table_rows=500, **budget).parameters["table_rows"] == 500
    assert "table_rows" not in dpgram.release(table, schema, **budget).parameters
    public = replace(schema, neighbours=Neighbours.REPLACE)
    assert "table_rows" not in dpgram.release(table, public, **budget).parameters


def test_a_guess_that_no_float_holds_is_refused_in_words():
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", -1, 1)], neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(MechanismError, match="must be a finite number"):
        dpgram.release({"x": [0.0]}, schema, table_rows=10**400, epsilon=1.0, delta=1e-6, mechanism="whitened-noise")
