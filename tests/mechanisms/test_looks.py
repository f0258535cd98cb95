"""Looks at columns: what they cost, that they see nothing but counts with noise, and what they find."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import dpgram
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.encoding.encode import encoded_columns
from dpgram.errors import MechanismError, SchemaError
from dpgram.mechanisms import looks, ranges, registry
from dpgram.mechanisms.conversation import CountsQuestion, GramAnswer, hold
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.rows.bin_counts import BinCounts
from dpgram.rows.clip import GRID, mapped
from dpgram.sampling.base import EXACT, exact_gram
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource
from dpgram.sources.open import open_source
from dpgram.terms.bins import Bins
from dpgram.terms.budget import Budget, Neighbours

FALSE_ALARM = 1e-9  # per case, when the code is right
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
WHITENED = MECHANISMS["whitened-noise"]
BUDGET = Budget(1.0, 1e-6)


def table(rows=20_000, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(50, 10, rows)
    year = rng.integers(1995, 2015, rows).astype(float)
    visits = np.where(rng.random(rows) < 0.8, 0.0, rng.poisson(4, rows) + 1.0)
    return {"a": a, "year": year, "visits": visits, "y": 3 * a + 2 * (year - 2005) + 5 * visits + rng.normal(0, 20, rows)}


def schema(times=1.0, **changes):
    wide = {"a": (0, 100), "year": (0, 2100), "visits": (0, 60), "y": (-100, 500)}
    columns = [dpgram.Numeric(name, low * times, high * times) for name, (low, high) in wide.items()]
    return dpgram.Schema(**{"unit": "row", "columns": columns, **changes})


def counted(columns, declared, bins):
    counts = BinCounts(declared, bins)
    for piece in open_source(columns).pieces(declared.names):
        counts.add(piece.batch)
    return counts.total()


def released(columns, declared, seed=0, source=None, **options):
    """An outcome, the questions, and what was announced, where counts and sums are those of the engines."""
    source = source or SeededSource(seed)
    asked = registry.schema_task(WHITENED, BUDGET, declared, "exact", options)
    questions, announced = [], []
    rows = len(columns["a"])

    def answer(question):
        questions.append(question)
        public = rows if declared.neighbours is REPLACE else None
        if isinstance(question, CountsQuestion):
            total = counted(columns, declared, question.bins)
        else:
            under = replace(declared, learnt=question.learnt)
            encoded = encoded_columns(under, columns)
            bounded = mapped(np.asfortranarray(encoded.T), question.row_bound, question.through, question.scales)
            sums = [points @ points.T for points in (bounded.points, *bounded.outer)]
            if source.arithmetic == EXACT:
                gram, *outer = (exact_gram(whole.astype(np.int64), -40) for whole in sums)
            else:
                gram, *outer = (whole / GRID**2 for whole in sums)
            return GramAnswer(gram, public, tuple(outer))
        gram = exact_gram(*total.in_whole_numbers()) if source.arithmetic == EXACT else total.in_scaled_units()
        return GramAnswer(gram, public)

    return hold(WHITENED.start(asked, source), answer, announced.append), questions, announced


# What a look costs.


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_pair_of_neighbours_moves_counts_by_more_than_the_sensitivity(data):
    columns = data.draw(st.integers(1, 5))
    names = [f"x{i}" for i in range(columns)]
    declared = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -5, 5) for name in names])
    edges = st.lists(st.floats(-4.9, 4.9), min_size=1, max_size=8, unique=True)
    bins = Bins({name: tuple(sorted(data.draw(edges))) for name in names})
    cell = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([-5.0, 0.0, 5.0, 1e300, None]))
    row = st.lists(cell, min_size=columns, max_size=columns)
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    other = [*rows[1:], data.draw(row)]

    def counts(of):
        cells = {name: np.array([np.nan if r[i] is None else r[i] for r in of], dtype=float) for i, name in enumerate(names)}
        return np.concatenate(list(bins.unpacked(counted(cells, declared, bins).high).values()))

    replaced = np.linalg.norm(counts(rows) - counts(other))
    added = np.linalg.norm(counts([*rows, other[-1]]) - counts(rows))
    assert replaced <= looks.counts_sensitivity(columns, REPLACE, 1)
    assert added <= looks.counts_sensitivity(columns, ADD_REMOVE, 1)


@pytest.mark.parametrize(("neighbours", "moved"), [(REPLACE, 2), (ADD_REMOVE, 1)])
@pytest.mark.parametrize("columns", [1, 4, 30])
def test_the_sensitivity_is_attained_and_no_larger(neighbours, moved, columns):
    """A row whose cell lies in another bin in every column. Without the square root of c a table of many columns would leak."""
    names = [f"x{i}" for i in range(columns)]
    declared = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -1, 1) for name in names])
    bins = Bins(dict.fromkeys(names, (0.0,)))
    first = {name: np.array([-0.5, 0.5]) for name in names}
    second = {name: np.array([0.5, 0.5] if neighbours is REPLACE else [0.5]) for name in names}
    one, other = (np.concatenate(list(bins.unpacked(counted(of, declared, bins).high).values())) for of in (first, second))
    assert np.sum((one - other) ** 2) == moved * columns
    sensitivity = looks.counts_sensitivity(columns, neighbours, 1)
    assert math.sqrt(moved * columns) <= sensitivity <= math.sqrt(moved * columns) * (1 + 1e-15)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
@pytest.mark.parametrize("times", [1, 100, 1e6])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_looks_and_rounds_spend_the_budget_and_no_more(neighbours, times, epsilon):
    """From the noise that was drawn: the sum of squares of all shifts, whatever the looks found, is mu^2."""
    made = dpgram.release(
        table(), schema(times, neighbours=neighbours), epsilon=epsilon, delta=1e-6, mechanism="whitened-noise", insecure_seed=1
    )
    mu = calibrate_mu(Budget(epsilon, 1e-6))
    given_columns = 4
    total, place = 0.0, 1
    while f"look_{place}_sd" in made.parameters:  # at most all columns are looked at: an upper bound of what a look cost
        total += looks.counts_sensitivity(given_columns, neighbours, 1) ** 2 / made.parameters[f"look_{place}_sd"] ** 2
        place += 1
    assert place > 1
    rounds = sum(made.parameters[f"round_{k}_mu"] ** 2 for k in range(1, int(made.parameters["rounds"]) + 1))
    spent = made.parameters["looks_mu"] ** 2 + rounds
    assert made.parameters["looks_mu"] ** 2 <= total * (1 + 1e-12)
    assert spent == pytest.approx(mu**2, rel=1e-12)
    assert gaussian_delta(epsilon, math.sqrt(spent)) <= 1e-6
    assert made.parameters["delta_at_epsilon"] <= 1e-6


def test_looks_that_would_overspend_are_refused_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(ranges, "share", lambda *args, **options: 0.2)
    drawn = []
    with pytest.raises(MechanismError, match="more of the budget than they may"):
        released(table(2000), schema(100), source=_Watched(drawn))
    assert not drawn


class _Watched(SeededSource):
    def __init__(self, drawn):
        super().__init__(0)
        self._drawn = drawn

    def normal(self, scale, size):
        self._drawn.append(size)
        return super().normal(scale, size)


@pytest.mark.parametrize("times", [1, 100])
def test_every_look_is_announced_with_what_it_costs(times):
    outcome, questions, announced = released(table(), schema(times))
    asked = sum(isinstance(question, CountsQuestion) for question in questions)
    assert asked == outcome.parameters["looks"]
    assert [drawing.number for drawing in announced] == list(range(1, len(questions) + 1))
    assert all(drawing.number < drawing.rounds for drawing in announced[:-1])
    assert announced[-1].number == announced[-1].rounds
    assert announced[asked - 1].spent.mu >= outcome.parameters["looks_mu"]
    assert announced[-1].spent.mu == pytest.approx(outcome.parameters["mu"], rel=1e-12)
    assert np.all(np.diff([drawing.spent.mu for drawing in announced]) >= 0)


def test_a_ledger_takes_looks_as_rounds():
    ledger = dpgram.SessionLedger(1.0, 1e-6)
    made = dpgram.release(
        table(), schema(100), epsilon=1.0, delta=1e-6, mechanism="whitened-noise", ledger=ledger, insecure_seed=0
    )
    assert made.schema.learnt


# The law of the noise.


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (0.7, False), (1.3, False)])
def test_counts_get_the_noise_that_the_proof_says(exact, scale, accepted, monkeypatch):
    """Of the first look at a table whose counts are known; three tenths more or less are seen."""
    columns, declared = table(3000), schema(1e6)
    seen = []
    real = ranges.next_bins
    monkeypatch.setattr(
        ranges, "next_bins", lambda looked, wide: seen.append(list(looked)) or (real(looked, wide) if not looked else None)
    )
    monkeypatch.setattr(ranges, "BLURRED", 1.0)
    if scale != 1.0:
        add = looks.add_symmetric_noise
        monkeypatch.setattr(looks, "add_symmetric_noise", lambda m, off, on, rng: add(m, scale * off, scale * on, rng))
    source = ExactSource(insecure_seed=5) if exact else SeededSource(5)
    released(columns, declared, source=source)
    (look,) = seen[-1]
    true = look.bins.unpacked(counted(columns, declared, look.bins).high)
    residuals = np.concatenate([look.counts[name] - true[name] for name in true])
    statistic = np.sum(residuals**2) / look.sd**2
    count = len(residuals)
    assert count > 500
    low, high = chi2.ppf(FALSE_ALARM / 2, count), chi2.isf(FALSE_ALARM / 2, count)
    assert (low < statistic < high) == accepted
    shares = look.sd * calibrate_mu(BUDGET) / looks.counts_sensitivity(4, REPLACE, 1)
    assert shares >= 1 / math.sqrt(ranges.MOST_SHARE) * (1 - 1e-9)


# What is looked at, and what is made of it.


@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
def test_what_is_asked_and_found_depends_on_published_counts_alone(neighbours, monkeypatch):
    """Two tables of other rows, and noise that happens to make their published counts the same: all that follows is the same."""
    declared = schema(100, neighbours=neighbours)
    asked = registry.schema_task(WHITENED, BUDGET, declared)
    published, real = [], looks.add_symmetric_noise

    def told(columns, add):
        monkeypatch.setattr(looks, "add_symmetric_noise", add)
        said, answers = [], []

        def answer(question):
            answers.append(counted(columns, declared, question.bins).in_scaled_units())
            said.append(question)
            return GramAnswer(answers[-1], len(columns["a"]) if neighbours is REPLACE else None)

        def conversation():
            return (yield from looks.learn(asked, SeededSource(3), calibrate_mu(BUDGET), None))

        return hold(conversation(), answer, said.append), said, answers

    def kept(matrix, *noise):
        published.append(real(matrix, *noise))
        return published[-1]

    first, one, true = told(table(20_000, seed=1), kept)
    again = iter(published)
    elsewhere = {name: cells / 50 for name, cells in table(20_000, seed=2).items()}
    second, other, others = told(elsewhere, lambda *_: next(again))
    assert first.task.learnt
    assert not np.array_equal(true[0], others[0])
    assert one == other
    assert (first.task.learnt, first.shifts, first.sds) == (second.task.learnt, second.shifts, second.sds)


def test_first_bins_follow_from_what_is_declared():
    declared = schema(100)
    first = [released(table(3000, seed), declared)[1][0].bins for seed in (1, 2)]
    assert first[0] == first[1]
    assert set(first[0].inner) == {"a", "year", "visits", "y"}


@pytest.mark.parametrize("times", [1e2, 1e4, 1e6])
def test_wide_bounds_are_found_out(times):
    """What is found holds the numbers in every release; in few of them noise makes it look much wider than it is."""
    truth = {"a": (30, 70), "visits": (0, 5), "y": (60, 240), "year": (1996, 2014)}
    much_too_wide = 0
    for seed in range(20):
        outcome, _, _ = released(table(), schema(times), seed=seed)
        assert set(outcome.learnt) == set(truth)
        for name, (low, high) in truth.items():
            found = outcome.learnt[name]
            assert found[0] <= low
            assert high <= found[1]
            much_too_wide += found[1] - found[0] > 40 * (high - low)
    assert much_too_wide <= 4  # of 80


@pytest.mark.parametrize("seed", range(5))
def test_bounds_that_fit_are_left_alone_after_one_look(seed):
    fits = dpgram.Schema(unit="row", columns=[dpgram.Numeric("a", 0, 100), dpgram.Numeric("y", -100, 500)])
    outcome, _, _ = released(table(), fits, seed=seed)
    assert outcome.learnt == {}
    assert outcome.parameters["looks"] == 1
    assert (outcome.parameters["looks_mu"] / outcome.parameters["mu"]) ** 2 == pytest.approx(ranges.LEAST_SHARE)


@pytest.mark.parametrize("times", [1.0, 1e6])
def test_a_table_too_small_to_see_anything_spends_nothing(times):
    outcome, _, _ = released(table(200), schema(times))
    assert outcome.learnt == {}
    assert "looks" not in outcome.parameters
    assert outcome.parameters["mu"] == pytest.approx(calibrate_mu(BUDGET), rel=1e-12)


def test_looks_can_be_declined():
    outcome, questions, _ = released(table(), schema(100), looks="none")
    assert outcome.learnt == {}
    assert not any(isinstance(question, CountsQuestion) for question in questions)
    with pytest.raises(MechanismError, match="looks is 'never'"):
        released(table(), schema(), looks="never")


def test_what_was_learnt_already_is_not_looked_at_again():
    declared = schema(100)
    learnt = {name: (float(low), float(high)) for name, (low, high) in {"a": (0, 120), "year": (1900, 2100)}.items()}
    outcome, questions, _ = released(table(), replace(declared, learnt=learnt))
    assert set(questions[0].bins.inner) == {"visits", "y"}
    assert outcome.learnt["a"] == learnt["a"]


def test_one_value_and_nothing_else_has_no_scale():
    columns = table()
    columns["visits"] = np.zeros(len(columns["a"]))
    outcome, _, _ = released(columns, schema(1e6))
    assert "visits" not in outcome.learnt
    assert "a" in outcome.learnt


@pytest.mark.parametrize("times", [100, 1e6])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
def test_coefficients_survive_wide_bounds(times, neighbours):
    columns = table(40_000)
    made = dpgram.release(
        columns, schema(times, neighbours=neighbours), epsilon=1.0, delta=1e-6, mechanism="whitened-noise", insecure_seed=2
    )
    fit = dpgram.regress(made, "y")
    assert fit.params["a"] == pytest.approx(3, abs=0.2)
    assert fit.params["year"] == pytest.approx(2, abs=0.3)
    wide = schema(max(times, 1000))  # at 100 times the maps alone may find the scales, by luck
    alone = dpgram.release(columns, wide, epsilon=1.0, delta=1e-6, mechanism="whitened-noise", insecure_seed=2, looks="none")
    assert abs(dpgram.regress(alone, "y").params["a"] - 3) > 0.3


@pytest.mark.parametrize("times", [1, 1000])
def test_a_calibration_tells_what_looks_are_expected_to_take(times):
    asked = replace(registry.schema_task(WHITENED, BUDGET, schema(times)), rows=20_000)
    planned = WHITENED.calibrate(asked)
    assert planned["looks"] == 1
    assert planned["mu"] == pytest.approx(calibrate_mu(BUDGET), rel=1e-12)
    assert planned["delta_at_epsilon"] <= 1e-6


@pytest.mark.parametrize("times", [1.0, 100.0, 1e6])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
def test_what_is_noted_of_a_drawing_does_not_depend_on_what_was_drawn(times, neighbours):
    """Theorem 3: a function of its place, at least what was spent by then, and never more than all."""
    mu, noted = calibrate_mu(BUDGET), {}
    for seed in range(4):
        outcome, questions, announced = released(table(5_000, seed), schema(times, neighbours=neighbours), seed)
        for drawing in announced:
            assert drawing.spent.mu == noted.setdefault(drawing.number, drawing.spent.mu)
        before = sum(isinstance(question, CountsQuestion) for question in questions)
        rounds = [outcome.parameters[f"round_{k}_mu"] for k in range(1, len(announced) - before + 1)]
        for place in range(before, len(announced) + 1):
            assert math.hypot(outcome.parameters["looks_mu"], *rounds[: place - before]) <= noted[place] * (1 + 1e-12)
    assert list(noted.values()) == sorted(noted.values())
    assert max(noted.values()) <= mu * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "wishart-noise", "whitened-noise"])
def test_a_schema_with_what_was_learnt_can_be_released_again_by_any_mechanism(mechanism):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(80, 1, 50_000), "y": rng.normal(0, 1, 50_000)}
    declared = dpgram.Schema(
        unit="row", columns=[dpgram.Numeric("x", -1e4, 1e4), dpgram.Numeric("y", -5, 5)], learnt={"x": (70.0, 90.0)}
    )
    made = dpgram.release(columns, declared, epsilon=50.0, delta=1e-6, mechanism=mechanism, insecure_seed=1)
    assert dpgram.covariance(made, ["x"]).mean[0] == pytest.approx(80, abs=0.5)


def test_numbers_at_a_bound_far_from_zero_are_no_reason_to_stop():
    rng = np.random.default_rng(0)
    columns = {"x": 1e9 + np.abs(rng.normal(0, 0.003, 20_000)), "y": rng.normal(0, 1, 20_000)}
    declared = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", 1e9, 1e9 + 100), dpgram.Numeric("y", -5, 5)])
    made = dpgram.release(columns, declared, epsilon=1.0, delta=1e-6, mechanism="whitened-noise", insecure_seed=1)
    assert "x" not in made.schema.learnt


@pytest.mark.parametrize("ends", [(0, 5e-324), (0, 10**400), (1.0, 1.0), (float("nan"), 2.0)])
def test_an_interval_that_no_release_can_have_learnt_is_refused(ends):
    with pytest.raises(SchemaError):
        dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", 0, 10)], learnt={"x": ends})


def found_slowly(counts, sd):
    """What ``ranges._found`` says, as its words have it: windows from the shortest, of each length the strongest first."""
    mass, free = np.zeros(len(counts)), np.ones(len(counts), dtype=bool)
    for width in ranges.WINDOWS:
        while True:
            places = [at for at in range(len(counts) - width + 1) if free[at : at + width].all()]
            sums = {at: math.fsum(counts[at : at + width]) for at in places}
            at = max(places, key=sums.__getitem__, default=None)
            if at is None or sums[at] < ranges.SURE * sd * math.sqrt(width):
                break
            mass[at : at + width], free[at : at + width] = sums[at] / width, False
    return mass


@pytest.mark.parametrize("seed", range(40))
def test_windows_that_stand_out_are_taken_one_after_the_other(seed):
    rng = np.random.default_rng(seed)
    counts = rng.normal(0, 10, int(rng.integers(1, 90)))
    counts[rng.integers(0, len(counts), 3)] += rng.exponential(60, 3)
    start = int(rng.integers(0, len(counts)))
    counts[start : start + 20] += rng.choice([8.0, 15.0, 25.0])
    assert ranges._found(counts, 10.0) == pytest.approx(found_slowly(counts, 10.0), rel=1e-12)


def looked_at(values, lower, upper):
    """Looks at one column without noise, as its rules ask for them, and what they learn."""
    seen, declared = [], {"x": (float(lower), float(upper))}
    while (bins := ranges.next_bins(seen, declared)) is not None:
        edges = np.array([-np.inf, *bins.inner["x"], np.inf])
        seen.append(ranges.Look(bins, {"x": np.histogram(values, edges)[0].astype(float)}, sd=1.0))
    return seen, ranges.intervals(seen, declared, float(len(values)))


def test_what_is_learnt_is_six_times_as_wide_as_the_bins_that_hold_the_numbers():
    values = np.random.default_rng(0).uniform(41, 42, 100_000)
    seen, learnt = looked_at(values, -1e6, 1e6)
    edges = np.array(seen[-1].bins.inner["x"])
    low, high = edges[edges <= np.quantile(values, 0.006)].max(), edges[edges >= np.quantile(values, 0.994)].min()
    assert high - low < 2
    assert learnt["x"] == pytest.approx((low - 2.5 * (high - low), high + 2.5 * (high - low)))


@pytest.mark.parametrize(
    ("first", "last", "count"),
    [
        (2.0**10, 2.0**14, 1),  # four bins of the first look hold them, which is enough to see how far they spread
        (2.0**12, 2.0**14, 2),  # two do not
        (9000.0, 9001.0, 3),
        (0.0, 1.0, 1),  # about zero, bins are fine anyway
    ],
)
def test_how_often_a_column_is_looked_at(first, last, count):
    at = np.random.default_rng(0).random(100_000)
    seen, learnt = looked_at(first * (last / first) ** at if first else last * at, 0, 2.0**20)
    assert len(seen) == count
    assert set(learnt) == {"x"}
    assert learnt["x"][0] <= first
    assert last <= learnt["x"][1]


@pytest.mark.parametrize("lower", [0.0, -(2.0**30)])
def test_numbers_that_are_one_value_have_no_scale(lower):
    _, learnt = looked_at(np.full(100_000, 7.0), lower, 2.0**30)
    assert learnt == {}
